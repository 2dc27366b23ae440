"""A file that can't be right is refused: every problem, each with its place, and nothing is changed."""

from pathlib import Path

import pytest

from actions.models import Downstream, Kind
from tests.policy_files.conftest import Apply, apply_file, example, stored

pytestmark = pytest.mark.django_db


def problems(apply: Apply, text: str) -> list[str]:
    before = stored()
    done = apply(text)
    assert done.code == 1
    assert stored() == before
    count, *lines = done.error.splitlines()
    assert count.endswith(f"{len(lines)} problem{'s' * (len(lines) != 1)}; nothing was changed.")
    return [line.strip() for line in lines]


def one(apply: Apply, old: str, new: str) -> str:
    """The one problem that the example has after this replacement."""
    assert old in example()
    (found,) = problems(apply, example().replace(old, new, 1))
    return found


def test_all_problems_are_listed_not_only_the_first(apply: Apply) -> None:
    found = problems(
        apply,
        """
        [[downstream]]
        name = "p"
        title = "x"
        conector = "http_json"
        [[kind]]
        name = "refund"
        title = 5
        downstream = "pp"
        limits.EUR = {review_above = 500, two_people_above = "1.001"}
        params_schema = {type = "objekt", a = 2000-01-01, b = nan}
        send_before_s = true
        [[agent]]
        kinds = ["refun"]
        [[agnet]]
        """,
    )
    places = [line.split(": ")[0] for line in found]
    assert places == [
        "agnet",
        "[[downstream]] p, conector",
        "[[downstream]] p, connector",
        "[[downstream]] p, base_url",
        "[[kind]] refund, title",
        "[[kind]] refund, limits.EUR.review_above",
        "[[kind]] refund, limits.EUR.two_people_above",
        "[[kind]] refund, params_schema.a",
        "[[kind]] refund, params_schema.b",
        "[[kind]] refund, send_before_s",
        "[[kind]] refund, downstream",
        "[[agent]] number 1, name",
        "[[agent]] number 1, kinds",
    ]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        # Names that nothing has.
        ("[[agent]]", "[[agents]]", "agents: There is no such table. Did you mean agent?"),
        ("[[agent]]", "[agent]", "agent: Write each one as a table of its own, under [[agent]]."),
        ("lag_s", "lags", "[[downstream]] payments, lags: There is no such key. Did you mean lag_s?"),
        ("[kind.limits]", "[kind.limit]", "[[kind]] refund, limit: There is no such key. Did you mean limits?"),
        (
            'title = "Support bot"',
            "built_in = true",
            "[[agent]] support-bot, built_in: There is no such key. There are:",
        ),
        (
            'downstream = "payments"',
            'downstream = "paymens"',
            "[[kind]] refund, downstream: There is no downstream 'paymens', here or in the file. Did you mean",
        ),
        # Other types.
        ("dedupes = true", "dedupes = 1", "[[downstream]] payments, dedupes: This is an integer; it must be true"),
        ("lag_s = 60", "lag_s = 60.0", "[[downstream]] payments, lag_s: This is a float; it must be a whole number."),
        ("lag_s = 60", 'lag_s = "60"', "[[downstream]] payments, lag_s: This is a string; it must be a whole"),
        ("lag_s = 60", "lag_s = -1", "[[downstream]] payments, lag_s: It must be from 0 to 2147483647."),
        ("lag_s = 60", 'lag_s = "none"', "[[downstream]] payments, lag_s: This is a string"),
        ('title = "Refund"', 'title = " Refund"', "[[kind]] refund, title: It begins or ends with blank space."),
        ('title = "Refund"', 'title = "a\\u0000b"', "[[kind]] refund, title: A text contains the character NUL."),
        ('title = "Refund"', "title = 2026-01-01", "[[kind]] refund, title: This is a date or time; it must be a"),
        ('kinds = ["refund"]', 'kinds = "refund"', "[[agent]] support-bot, kinds: It must be a list of names."),
        ('kinds = ["refund"]', 'kinds = ["refund", "refund"]', "[[agent]] support-bot, kinds: Named twice: refund."),
        ('executors = "landed"', 'executors = "me"', "executors: 'me' is none of: landed, caller, both."),
        # What the models say.
        ('name = "refund"', 'name = "Re fund"', "[[kind]] Re fund, name: Small letters, digits, - and _"),
        ("https://payments.example", "payments.example", "[[downstream]] payments, base_url: An address such as"),
        ("[30, 60, 300, 900, 3600]", "[]", "[[kind]] refund, check_schedule: This field cannot"),
        ("[30, 60, 300, 900, 3600]", "[true]", "[[kind]] refund, check_schedule: A list of seconds"),
        ("dedupes = true", "dedupes = false", "[[downstream]] payments: Constraint “downstream_window_needs_dedupe”"),
        # What the admin's forms say.
        ('connector = "http_json"', 'connector = "htpp"', "[[downstream]] payments, connector: There is no"),
        ('path = "/v1/refunds"', 'paht = "/v1"\npath = "/"', "config: send: Additional properties are not allowed"),
        ('type = "object"', 'type = "objekt"', "[[kind]] refund, params_schema: Not a JSON Schema (2020-12)"),
        ('type = "object"', '"$ref" = "https://e.example/s"', "params_schema: Only references inside the schema"),
        ('customer_from = "customer"', 'customer_from = "a ||"', "customer_from: Not a JMESPath expression"),
        ('"order-[0-9]+(/line', '"order-([0-9]+(/line', "subject_pattern: Not a regular expression"),
        ('confirmed = "Your', 'landed = "Your', "[[kind]] refund, customer_texts: Not a status: landed."),
        ("absences_needed = 2", "paused = true", "[[kind]] refund, pause_reason: Say why it is paused"),
        # Limits.
        ('review_above = "500.00"', "review_above = 500", "limits.EUR.review_above: Write the amount as a string in"),
        ('review_above = "500.00"', 'review_above = "500.001"', "500.001 has more decimals than EUR has (2)."),
        ('review_above = "500.00"', 'review_above = "0.000"', "0.000 has more decimals than EUR has (2)."),
        ('review_above = "500.00"', 'review_above = "5,00"', "'5,00' is not an amount"),
        ('review_above = "500.00"', 'review_above = "-1"', "'-1' is not an amount"),
        ('review_above = "500.00"', 'reveiw_above = "500.00"', "[[kind]] refund, limits: EUR: only approve_above,"),
        ('JPY = { review_above = "80000"', 'JPY = { review_above = "1.5"', "1.5 has more decimals than JPY has (0)."),
        ("JPY = {", "EURO = {", "'EURO' is not the code of a currency in force (ISO 4217)."),
        # What no database stores alike.
        ('type = "object"', "maximum = 9007199254740993", "params_schema.maximum: This number is too large"),
        ('type = "object"', "maximum = inf", "params_schema.maximum: This is a float that JSON doesn't have."),
        ('type = "object"', "since = 2026-01-01", "params_schema.since: This is a date or time that JSON"),
        ('type = "object"', 'title = "\\u0000"', "params_schema.title: A text contains the character NUL."),
    ],
)  # fmt: skip
def test_it_is_refused_where_it_stands(apply: Apply, old: str, new: str, expected: str) -> None:
    assert old in example()
    found = problems(apply, example().replace(old, new, 1))
    assert any(expected in line for line in found), found


def test_one_mistake_is_one_problem(apply: Apply) -> None:
    assert one(apply, "lag_s = 60", 'lag_s = "60"').startswith("[[downstream]] payments, lag_s")
    assert one(apply, 'connector = "http_json"', "connector = 5").startswith("[[downstream]] payments, connector")
    assert one(apply, 'downstream = "payments"', "downstream = 1").startswith("[[kind]] refund, downstream")


def test_a_zero_limit_means_always(apply: Apply) -> None:
    assert apply(example().replace('"500.00"', '"0"').replace('"5000.00"', '"0.00"')).code == 0
    assert Kind.objects.get().limits["EUR"] == {"review_above": 0, "two_people_above": 0, "approve_above": 1_000_000}


def test_a_name_that_stands_there_twice_is_refused(apply: Apply) -> None:
    text = example() + '[[agent]]\nname = "support-bot"\n'
    assert problems(apply, text) == ["[[agent]] support-bot, name: The file has this name twice."]


def test_a_name_that_is_no_text_breaks_nothing(apply: Apply) -> None:
    for name in ("5", '""', '"a\\u0000b"', "[]"):
        assert "name: " in problems(apply, f"[[agent]]\nname = {name}\n")[0]


@pytest.mark.parametrize("text", ["[[kind]\n", "a = 1\na = 2\n", '\ufeff[[kind]]\nname = "x"', "x = " + "[" * 5_000])
def test_what_is_not_toml_is_refused_with_its_line(apply: Apply, text: str) -> None:
    assert "This is not TOML" in problems(apply, text)[0] or "too deeply" in problems(apply, text)[0]


def test_a_file_that_can_not_be_read_is_said_so(tmp_path: Path) -> None:
    assert "can't be read: No such file or directory." in apply_file(tmp_path / "none.toml").error
    assert "can't be read" in apply_file(tmp_path).error
    file = tmp_path / "latin.toml"
    file.write_bytes('title = "Rückzahlung"'.encode("latin-1"))
    assert "is not UTF-8" in apply_file(file).error


SECRETS = [
    "sk_" + "live_51HCOXXAaYYbbiuYYuu990011",
    "AKIA" + "IOSFODNN7EXAMPLE",
    "ghp_" + "abcdefghijklmnopqrst0123456789",
    "lnd_" + "a" * 43,
    "eyJhbGciOiJIUzI1NiJ9" + ".eyJzdWIiOiIxIn0.abcdefghijk",
    "Bearer abcdef0123456789",
    "whsec_" + "abcdef1234567890",
    "aB3" * 12,
    "0123456789abcdef" * 4,
    "-----BEGIN " + "PRIVATE KEY-----",
]


@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.parametrize(
    ("old", "key"),
    [
        ('account = "acct_1"', "account"),
        ('secret_env = "PAYMENTS_KEY"', "secret_env"),
        ('id = "id"', "id"),
    ],
)
def test_a_value_that_looks_like_a_secret_is_refused_and_not_repeated(
    apply: Apply, secret: str, old: str, key: str
) -> None:
    found = problems(apply, example().replace(old, f'{key} = "{secret}"', 1))
    assert any(f"{key}: This is, or looks like, a secret." in line for line in found), found
    assert secret not in "".join(found)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('account = "acct_1"', 'secret = "hunter2"'),
        ('account = "acct_1"', 'api_key = "hunter2"'),
        ('account = "acct_1"', 'password = "hunter2"'),
        ('"Bearer {secret}"', '"hunter2"'),
        ('Authorization = "Bearer {secret}"', 'X-Api-Key = "hunter2"'),
        ('Authorization = "Bearer {secret}"', 'X-Auth-Token = "hunter2"'),
        ('path = "/v1/refunds"', 'client_secret = "hunter2"\npath = "/"'),
        ("https://payments.example", "https://me:hunter2@payments.example"),
    ],
)
def test_a_key_that_is_called_like_a_secret_is_refused_and_its_value_not_repeated(
    apply: Apply, old: str, new: str
) -> None:
    found = problems(apply, example().replace(old, new, 1))
    assert any("This is, or looks like, a secret." in line and "secret_env" in line for line in found), found
    assert "hunter2" not in "".join(found)


@pytest.mark.parametrize(
    "text",
    ['[[agent]]\nname = "a"\ntokens = ["x"]\n', '[[token]]\nagent = "a"\n', '[[agent]]\nname = "a"\ntoken = "x"'],
)
def test_tokens_are_never_in_a_file(apply: Apply, text: str) -> None:
    (found,) = problems(apply, text)
    assert "create_token" in found or "secret" in found


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('account = "acct_1"', 'account = "0193a1f2-7b1c-7def-8abc-0123456789ab"'),
        ('account = "acct_1"', 'account = "acct_1032D82eZvKYlo2C"'),
        ('account = "acct_1"', 'account = "DE89370400440532013000"'),
        ('query = { idempotency_key = "idempotency_key" }', 'query = { page_token = "idempotency_key" }'),
        ("maxLength = 500 }", 'maxLength = 500 }, token = { type = "string" }, password = { type = "string" }'),
        ('type = "object"', 'required = ["reason"]\n"$schema" = "https://json-schema.org/draft/2020-12/schema"'),
        ('"Your refund is on its way."', '"Basic refunds take 3 days; the secret is patience."'),
    ],
)
def test_what_only_resembles_a_secret_is_taken(apply: Apply, old: str, new: str) -> None:
    assert old in example()
    done = apply(example().replace(old, new, 1))
    assert done.code == 0, done.error
    assert Downstream.objects.exists()


def test_an_installed_connector_that_does_not_load_is_a_problem_of_its_row(
    apply: Apply, monkeypatch: pytest.MonkeyPatch
) -> None:
    from actions.connectors import registry

    def broken(name: str) -> None:
        raise ModuleNotFoundError("No module named 'theirs'")

    monkeypatch.setattr(registry, "get", broken)
    assert "connector: The installed connector theirs can't be loaded" in one(apply, '"http_json"', '"theirs"')
