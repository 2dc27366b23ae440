"""The desk's pages."""

from django.contrib.auth.views import LoginView, LogoutView
from django.urls import path

from reconciliation.views.case import case, check, comment, decide, release, take
from reconciliation.views.intent import intent
from reconciliation.views.intents import intents
from reconciliation.views.ledger import ledger
from reconciliation.views.money import money, money_csv, resolve
from reconciliation.views.queue import news, next_case, queue
from reconciliation.views.stops import lift, place, stops

urlpatterns = [
    path("", queue, name="queue"),
    path("news/", news, name="queue_news"),
    path("next/", next_case, name="next_case"),
    path("reviews/<int:review_id>/", case, name="case"),
    path("reviews/<int:review_id>/take/", take, name="case_take"),
    path("reviews/<int:review_id>/release/", release, name="case_release"),
    path("reviews/<int:review_id>/check/", check, name="case_check"),
    path("reviews/<int:review_id>/comment/", comment, name="case_comment"),
    path("reviews/<int:review_id>/decide/", decide, name="case_decide"),
    path("intents/", intents, name="intents"),
    path("intents/<uuid:intent_id>/", intent, name="intent"),
    path("ledger/", ledger, name="ledger"),
    path("money/", money, name="money"),
    path("money/money.csv", money_csv, name="money_csv"),
    path("money/<int:difference_id>/resolve/", resolve, name="money_resolve"),
    path("stops/", stops, name="stops"),
    path("stops/place/", place, name="stop_place"),
    path("stops/<int:stop_id>/lift/", lift, name="stop_lift"),
    path("login/", LoginView.as_view(template_name="login.html", redirect_authenticated_user=True), name="login"),
    path("logout/", LogoutView.as_view(), name="logout"),
]
