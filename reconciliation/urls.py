"""The desk's pages."""

from django.urls import path, re_path

from reconciliation import converters
from reconciliation.views import correction, handling
from reconciliation.views.attachments import attachment, erase
from reconciliation.views.bulk import bulk
from reconciliation.views.case import case, check, comment, decide, release, take
from reconciliation.views.dashboard import dashboard
from reconciliation.views.did import did, did_csv
from reconciliation.views.incident import incident
from reconciliation.views.intent import intent
from reconciliation.views.intents import intents, intents_csv
from reconciliation.views.ledger import ledger
from reconciliation.views.money import money, money_csv, resolve
from reconciliation.views.pauses import pause, pauses, resume
from reconciliation.views.preferences import keep, preferences
from reconciliation.views.queue import queue
from reconciliation.views.queue_export import queue_csv
from reconciliation.views.queue_news import news
from reconciliation.views.raw import raw
from reconciliation.views.stops import lift, place, stops
from reconciliation.views.team import team
from reconciliation.views.typed import draft
from reconciliation.views.uploads import attach

converters.register()

_OF = r"^(?P<scope>agent|kind|downstream)/(?P<name>[a-z][a-z0-9_-]{0,63})/"

urlpatterns = [
    path("", queue, name="queue"),
    path("queue.csv", queue_csv, name="queue_csv"),
    path("news/", news, name="queue_news"),
    path("next/", handling.next_case, name="next_case"),
    path("reviews/<row:review_id>/", case, name="case"),
    path("reviews/<row:review_id>/take/", take, name="case_take"),
    path("reviews/<row:review_id>/release/", release, name="case_release"),
    path("reviews/<row:review_id>/renew/", handling.renew, name="case_renew"),
    path("reviews/<row:review_id>/skip/", handling.skip, name="case_skip"),
    path("reviews/<row:review_id>/keep/", handling.keep, name="case_keep"),
    path("reviews/<row:review_id>/give-back/", handling.give_back, name="case_give_back"),
    path("reviews/<row:review_id>/take-over/", handling.take_over, name="case_take_over"),
    path("reviews/<row:review_id>/hand/", handling.hand, name="case_hand"),
    path("reviews/<row:review_id>/hand-over/", handling.hand_over, name="case_hand_over"),
    path("reviews/<row:review_id>/wait/", handling.wait, name="case_wait"),
    path("reviews/<row:review_id>/put-aside/", handling.put_aside, name="case_put_aside"),
    path("reviews/<row:review_id>/resume/", handling.resume, name="case_resume"),
    path("reviews/<row:review_id>/raise/", handling.raise_case, name="case_raise"),
    path("reviews/<row:review_id>/undo/", handling.undo, name="case_undo"),
    path("reviews/<row:review_id>/undo-state/", handling.undo_state, name="case_undo_state"),
    path("reviews/<row:review_id>/check/", check, name="case_check"),
    path("reviews/<row:review_id>/comment/", comment, name="case_comment"),
    path("reviews/<row:review_id>/decide/", decide, name="case_decide"),
    path("reviews/<row:review_id>/draft/", draft, name="case_draft"),
    path("reviews/<row:review_id>/attach/", attach, name="case_attach"),
    path("attachments/<row:attachment_id>/", attachment, name="attachment"),
    path("attachments/<row:attachment_id>/erase/", erase, name="attachment_erase"),
    path("evidence/<row:evidence_id>/", raw, name="raw"),
    path("intents/", intents, name="intents"),
    path("intents.csv", intents_csv, name="intents_csv"),
    path("intents/<uuid:intent_id>/", intent, name="intent"),
    path("intents/<uuid:intent_id>/open/", handling.open_page, name="intent_open"),
    path("intents/<uuid:intent_id>/open-case/", handling.open_case, name="intent_open_case"),
    path("intents/<uuid:intent_id>/correct/", correction.correction, name="correction"),
    path("intents/<uuid:intent_id>/correct/propose/", correction.propose, name="correction_propose"),
    path("intents/<uuid:intent_id>/correct/agree/", correction.agree, name="correction_agree"),
    path("intents/<uuid:intent_id>/correct/refuse/", correction.refuse, name="correction_refuse"),
    path("ledger/", ledger, name="ledger"),
    path("money/", money, name="money"),
    path("money/money.csv", money_csv, name="money_csv"),
    path("money/<row:difference_id>/resolve/", resolve, name="money_resolve"),
    path("stops/", stops, name="stops"),
    path("stops/place/", place, name="stop_place"),
    path("stops/<row:stop_id>/lift/", lift, name="stop_lift"),
    path("pauses/", pauses, name="pauses"),
    path("pauses/pause/", pause, name="pause"),
    path("pauses/resume/", resume, name="resume"),
    re_path(_OF + r"$", did, name="did"),
    re_path(_OF + r"did\.csv$", did_csv, name="did_csv"),
    path("bulk/", bulk, name="bulk"),
    path("incidents/<row:incident_id>/", incident, name="incident"),
    path("team/", team, name="team"),
    path("team/figures/", dashboard, name="dashboard"),
    path("preferences/", preferences, name="preferences"),
    path("preferences/keep/", keep, name="preferences_keep"),
    path("login/", handling.LogIn.as_view(), name="login"),
    path("logout/", handling.LogOut.as_view(), name="logout"),
]
