"""A case goes from one person to another, with everything that is in it."""

from typing import Any

import pytest
from django.db import connection

from actions import history
from actions.errors import BadDecision, ReviewHeld
from actions.models import Intent
from reconciliation.models import Comment, Notice, Review
from reconciliation.reviews import claiming
from tests import factories
from tests.desk.steps import again, all_at_once, lease_is_over, log_in, lost_answer, press, read, text_of
from tests.flow.world import World
from tests.pages.cases import make_case

pytestmark = pytest.mark.django_db


def hand(review: Review, client: Any, to: Any, note: str = "The bank calls at two.") -> Any:
    given = {"to": str(to.pk), "note": note}
    return client.post(f"/reviews/{review.pk}/hand-over/", given, follow=True)


def test_a_case_is_handed_over_with_a_note_and_is_the_others_from_then_on() -> None:
    review = make_case()
    mara, _ = log_in(first_name="Mara")
    jon, person = log_in(first_name="Jon")
    mara.post(f"/reviews/{review.pk}/take/")
    assert "Handed over to Jon, with your note." in text_of(hand(review, mara, person))
    assert (read(review).owner, read(review).holder) == (person, None)
    assert "The bank calls at two." in text_of(jon.get(f"/reviews/{review.pk}/"))
    assert Notice.objects.get(kind="handed").to == person
    jon.post(f"/reviews/{review.pk}/take/")
    assert read(review).holder == person
    assert history.faults(Intent.objects.get(pk=review.intent_id)) == []


def test_what_was_handed_to_me_is_in_my_mine_and_in_nobody_elses() -> None:
    review = make_case()
    mara, _ = log_in()
    jon, person = log_in()
    hand(review, mara, person)
    assert f"/reviews/{review.pk}/" in text_of(jon.get("/?tab=mine"))
    assert f'href="/reviews/{review.pk}/"' not in text_of(mara.get("/?tab=mine"))
    assert mara.post("/next/").url == "/"


def test_the_old_holders_open_page_is_told_on_its_next_step(world: World) -> None:
    intent, review = lost_answer(world)
    path = f"/reviews/{review.pk}/"
    mara, _ = log_in(first_name="Mara")
    mara.post(path + "take/")
    page = mara.get(path)
    sofia, boss = log_in("supervisor", first_name="Sofia")
    assert "The case is yours now." in text_of(sofia.post(path + "take-over/", {"note": "VIP"}, follow=True))
    assert "Sofia has it until" in text_of(mara.post(path + "renew/"))
    answer = mara.post(path + "decide/", press(page, note="I called them."))
    assert answer.status_code == 409
    assert "Sofia has it until" in text_of(answer)
    assert answer.context["comment_form"]["text"].value() == "I called them."
    assert world.read(intent).status == "unknown"
    assert (read(review).holder, read(review).owner) == (boss, boss)
    assert Comment.objects.get(kind="taken").text.text == "VIP"


def test_whoever_tries_to_take_somebody_elses_case_reads_what_can_be_done() -> None:
    review = make_case()
    mara, _ = log_in()
    _, person = log_in(first_name="Jon")
    hand(review, mara, person)
    page = text_of(mara.post(f"/reviews/{review.pk}/take/", follow=True))
    assert "This case belongs to somebody else. A supervisor can take it over." in page


def test_only_a_supervisor_takes_over() -> None:
    review = make_case()
    claiming.keep(review.pk, person=factories.make_person())
    client, _ = log_in()
    assert "You don&#x27;t have the permission" in text_of(
        client.post(f"/reviews/{review.pk}/take-over/", follow=True)
    )


@pytest.mark.parametrize(
    ("given", "words"),
    [({"note": ""}, "Say in a note what they should know."), ({"to": ""}, "Choose a person.")],
)
def test_a_hand_over_needs_a_person_and_a_note(given: dict[str, str], words: str) -> None:
    review = make_case()
    client, _ = log_in()
    asked = {"to": str(factories.make_person().pk), "note": "The bank calls."} | given
    page = client.post(f"/reviews/{review.pk}/hand-over/", asked)
    assert page.status_code == 422
    assert words in text_of(page)
    assert read(review).owner is None


def test_nobody_is_offered_who_can_not_decide() -> None:
    review, auditor = make_case(), factories.make_person("auditor", first_name="Otto")
    gone = factories.make_person(is_active=False)
    client, _ = log_in()
    page = client.get(f"/reviews/{review.pk}/hand/")
    offered = set(page.context["form"].fields["to"].queryset)
    assert not offered & {auditor, gone}
    answer = hand(review, client, auditor)
    assert "This person can&#x27;t decide cases." in text_of(answer)
    with pytest.raises(BadDecision):
        claiming.hand_over(review.pk, person=factories.make_person(), to=gone, note="x")


def test_a_half_finished_case_at_shift_change_is_all_there_for_the_next_person(world: World) -> None:
    intent, review = lost_answer(world)
    path = f"/reviews/{review.pk}/"
    mara, _ = log_in(first_name="Mara")
    jon, person = log_in(first_name="Jon")
    mara.post(path + "take/")
    mara.post(path + "comment/", {"text": "Provider says: settled, reference 99."})
    hand(review, mara, person, "Waiting for the statement only.")
    mara.post("/logout/")
    page = jon.get(path)
    assert "Provider says: settled, reference 99." in text_of(page)
    assert "Waiting for the statement only." in text_of(page)
    jon.post(path + "decide/", press(page))
    assert world.read(intent).status == "confirmed"


def test_it_is_not_handed_to_whoever_gave_the_first_vote(world: World) -> None:
    _, review = lost_answer(world, amount="7400.00")
    path = f"/reviews/{review.pk}/"
    boss, person = log_in("supervisor")
    boss.post(path + "decide/", press(boss.get(path)))
    other, _ = log_in()
    assert "The first vote is theirs" in text_of(hand(review, other, person))
    assert "The first vote is theirs" in text_of(boss.post(path + "take-over/", follow=True))
    assert read(review).owner is None


def test_a_first_vote_frees_the_case_for_the_second_person_also_when_it_was_ones_own(world: World) -> None:
    intent, review = lost_answer(world, amount="7400.00")
    path = f"/reviews/{review.pk}/"
    mara, _ = log_in()
    mara.post(path + "keep/")
    mara.post(path + "decide/", press(mara.get(path)))
    jon, _ = log_in()
    assert jon.post("/next/").url == path
    jon.post(path + "decide/", press(jon.get(path)))
    assert world.read(intent).status == "confirmed"


@pytest.mark.django_db(transaction=True)
def test_of_a_claim_and_a_hand_over_at_once_nobody_ends_with_somebody_elses_case() -> None:
    review = make_case()
    mara, jon, ida = (factories.make_person() for _ in range(3))
    found = all_at_once(
        [
            lambda: claiming.hand_over(review.pk, person=mara, to=jon, note="yours"),
            lambda: claiming.claim(review.pk, person=ida),
        ]
    )
    now = read(review)
    handed, claimed = (not isinstance(one, BaseException) for one in found)
    assert handed or claimed
    if handed:
        # Its lease is cut, whoever was faster.
        assert (now.owner, now.holder) == (jon, None)
    else:
        assert isinstance(found[0], ReviewHeld)
        assert now.holder == ida


@pytest.mark.django_db(transaction=True)
@pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite has one writer at a time")
def test_of_supervisors_who_take_over_at_once_one_has_it() -> None:
    review = make_case()
    claiming.keep(review.pk, person=factories.make_person())
    people = [factories.make_person("supervisor") for _ in range(4)]
    all_at_once([lambda person=person: claiming.take_over(review.pk, person=person) for person in people])
    now = read(review)
    assert now.owner in people
    assert now.holder in (now.owner, None)


def test_a_session_of_the_same_person_elsewhere_is_the_same_person() -> None:
    review = make_case()
    client, person = log_in()
    client.post(f"/reviews/{review.pk}/take/")
    assert again(person).post(f"/reviews/{review.pk}/take/").status_code == 302
    lease_is_over(review)
    assert read(review).holder == person


def test_the_page_of_a_handed_case_says_whose_it_is_and_offers_nobody_else_to_take_it() -> None:
    review = make_case()
    jon = factories.make_person(first_name="Jon")
    claiming.hand_over(review.pk, person=factories.make_person(), to=jon, note="Yours.")
    page, _ = log_in()
    shown = page.get(f"/reviews/{review.pk}/").content.decode()
    assert "Jon&#x27;s case" in shown or "Jon's case" in shown
    assert "nobody holds it" not in shown
    assert "Take this case" not in shown
    assert 'value="confirm"' not in shown
