"""The desk's pages."""

from django.contrib.auth.views import LoginView, LogoutView
from django.urls import path

from reconciliation.views.case import case, check, comment, decide, release, take
from reconciliation.views.intent import intent
from reconciliation.views.intents import intents
from reconciliation.views.queue import news, next_case, queue

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
    path("login/", LoginView.as_view(template_name="login.html", redirect_authenticated_user=True), name="login"),
    path("logout/", LogoutView.as_view(), name="logout"),
]
