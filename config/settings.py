"""Settings, all of them from the environment. `boot.py` refuses what is unsafe outside the demo."""

from datetime import timedelta
from pathlib import Path
from typing import Any

from environs import Env

env = Env()

BASE_DIR = Path(__file__).resolve().parent.parent
# Where one machine keeps its database and its Redis socket. Hosts of a larger installation keep no state.
DATA_DIR = Path(env.str("LANDED_DATA", str(BASE_DIR / "var")))

# "demo" and "test" may run on made-up secrets; everything else is held to boot.py's rules.
MODE = env.str("LANDED_MODE", "production")
DEBUG = False
SECRET_KEY = env.str("SECRET_KEY", "" if MODE == "production" else "only-for-demo-and-tests-" + "x" * 40)
# Former ones, while one is exchanged: sessions and webhook signatures by these still count.
SECRET_KEY_FALLBACKS: list[str] = env.list("SECRET_KEY_FALLBACKS", [])
ALLOWED_HOSTS = env.list("ALLOWED_HOSTS", [] if MODE == "production" else ["127.0.0.1", "localhost", "testserver"])
CSRF_TRUSTED_ORIGINS: list[str] = env.list("CSRF_TRUSTED_ORIGINS", [])

INSTALLED_APPS = [
    "config.apps.LandedConfig",
    "actions.apps.ActionsConfig",
    "reconciliation.apps.ReconciliationConfig",
    "config.apps.LandedAdminConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django_htmx",
    "django_rq",
    "simple_history",
    "ninja",
    "axes",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "config.middleware.security_headers",
    "config.middleware.forms_in_utf8",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "reconciliation.middleware.as_the_reader_likes",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "simple_history.middleware.HistoryRequestMiddleware",
    "axes.middleware.AxesMiddleware",
]

ROOT_URLCONF = "config.urls"
WSGI_APPLICATION = "config.wsgi.application"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]


def _database() -> dict[str, Any]:
    found: dict[str, Any] = env.dj_db_url("DATABASE_URL", f"sqlite:///{DATA_DIR / 'landed.sqlite3'}")
    found["CONN_MAX_AGE"] = 600
    found["CONN_HEALTH_CHECKS"] = True
    if found["ENGINE"] == "django.db.backends.sqlite3":
        found["OPTIONS"] = {
            # A deferred transaction that upgrades from reading to writing fails at once instead of waiting;
            # an immediate one waits its turn.
            "transaction_mode": "IMMEDIATE",
            "timeout": 20,
            # Prepared ones that are kept; the driver's 128 are fewer than one day at the desk takes.
            "cached_statements": 1_000,
            # FULL: a commit that was acknowledged survives a power cut, in WAL mode too.
            "init_command": (
                "PRAGMA journal_mode=WAL;PRAGMA synchronous=FULL;"
                "PRAGMA recursive_triggers=ON;PRAGMA busy_timeout=20000;"
            ),
        }
    return found


DATABASES = {"default": _database()}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

REDIS_URL = env.str("REDIS_URL", "") or f"unix://{DATA_DIR / 'redis.sock'}"


def _impatient(url: str) -> str:
    """A frozen Redis must not hold up a request: a ring that gets no answer within a second is given up.

    In the URL, because django-rq hands REDIS_CLIENT_KWARGS on for HOST and PORT only.
    """
    if "socket_timeout=" in url:
        return url
    return f"{url}{'&' if '?' in url else '?'}socket_timeout=1&socket_connect_timeout=1"


def _queue() -> dict[str, Any]:
    return {
        "URL": _impatient(REDIS_URL),
        "DEFAULT_TIMEOUT": 180,
        # JSON, because pickle from a shared Redis is code from a shared Redis.
        "SERIALIZER": "rq.serializers.JSONSerializer",
    }


RQ_QUEUES = {"send": _queue(), "check": _queue()}
RQ = {"COMMIT_MODE": "auto"}  # actions.jobs.ring puts itself after the commit

LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "queue"
LOGOUT_REDIRECT_URL = "login"
if MODE == "test":
    PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]  # hundreds of logins, nothing to guard
# The first refuses whoever has to wait (django-axes); the second looks at the password.
AUTHENTICATION_BACKENDS = ["axes.backends.AxesStandaloneBackend", "django.contrib.auth.backends.ModelBackend"]
# After so many wrong passwords for one name from one address both together wait, at the desk and in the admin.
AXES_FAILURE_LIMIT = 10
AXES_COOLOFF_TIME = timedelta(minutes=15)
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]
# Trying again meanwhile makes nobody wait longer; getting in begins anew.
AXES_RESET_COOL_OFF_ON_FAILURE_DURING_LOCKOUT = False
AXES_RESET_ON_SUCCESS = True
AXES_LOCKOUT_CALLABLE = "config.throttling.wait"
AXES_USERNAME_CALLABLE = "config.throttling.client_name"
AXES_CLIENT_IP_CALLABLE = "config.throttling.client_address"
AXES_SENSITIVE_PARAMETERS = ["username", "ip_address", "csrfmiddlewaretoken", "next"]
# What is stored is there to count, not to be looked at.
AXES_DISABLE_ACCESS_LOG = True
AXES_ENABLE_ADMIN = False
AXES_VERBOSE = False
# So many proxies of one's own stand in front and add to X-Forwarded-For; 0: what it says is anybody's word.
LANDED_TRUSTED_PROXIES = env.int("LANDED_TRUSTED_PROXIES", 0)
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 10}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]

LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
USE_TZ = True
USE_I18N = True

STATIC_URL = "/static/"
# None outside production: there is nothing to collect, and whitenoise would miss the folder.
STATIC_ROOT = Path(env.str("STATIC_ROOT", str(BASE_DIR / "staticfiles"))) if MODE == "production" else None
STATICFILES_DIRS = [BASE_DIR / "static"]
# The demo and the tests serve straight from the sources; production serves what collectstatic hashed.
WHITENOISE_USE_FINDERS = MODE != "production"
WHITENOISE_AUTOREFRESH = False
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {
        "BACKEND": (
            "whitenoise.storage.CompressedManifestStaticFilesStorage"
            if MODE == "production"
            else "django.contrib.staticfiles.storage.StaticFilesStorage"
        )
    },
}
FIXTURE_DIRS = [BASE_DIR / "fixtures"]

# The API reads bodies itself, strictly; this is its ceiling.
DATA_UPLOAD_MAX_MEMORY_SIZE = 1_048_576

SECURE_SSL_REDIRECT = env.bool("SECURE_SSL_REDIRECT", MODE == "production")
SECURE_HSTS_SECONDS = env.int("SECURE_HSTS_SECONDS", 31_536_000 if MODE == "production" else 0)
SECURE_HSTS_INCLUDE_SUBDOMAINS = env.bool("SECURE_HSTS_INCLUDE_SUBDOMAINS", MODE == "production")
SECURE_HSTS_PRELOAD = env.bool("SECURE_HSTS_PRELOAD", MODE == "production")
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if env.bool("BEHIND_TLS_PROXY", False) else None
# A working day: a desk that is left open is not open for ever.
SESSION_COOKIE_AGE = env.int("SESSION_HOURS", 10) * 3_600
SESSION_COOKIE_SECURE = MODE == "production"
CSRF_COOKIE_SECURE = MODE == "production"
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"

SIMPLE_HISTORY_REVERT_DISABLED = True


def _mail() -> dict[str, Any]:
    """How e-mail leaves: EMAIL_URL (smtp://user:password@host:25, submission://… with STARTTLS). The demo writes
    files; production without EMAIL_URL sends none, and boot.py's check says so."""
    if env.str("EMAIL_URL", ""):
        found: dict[str, Any] = env.dj_email_url("EMAIL_URL")
        return found
    backends = {"demo": "filebased", "test": "locmem"}
    return {
        "EMAIL_BACKEND": f"django.core.mail.backends.{backends.get(MODE, 'dummy')}.EmailBackend",
        "EMAIL_FILE_PATH": str(DATA_DIR / "mail"),
    }


locals().update(_mail())
# A mail server that hangs holds up the thread that sends, and that not for ever.
EMAIL_TIMEOUT = env.int("EMAIL_TIMEOUT", 10)
DEFAULT_FROM_EMAIL = env.str("EMAIL_FROM", "landed@localhost")
# Whether notices are written down and sent at all.
LANDED_MAIL = MODE != "production" or bool(env.str("EMAIL_URL", ""))
# Where the desk is, for links in e-mails: https://landed.example. Empty: e-mails name cases by number only.
LANDED_PUBLIC_URL = env.str("LANDED_PUBLIC_URL", "").rstrip("/")
# So long before it is due a case is due soon, and so long overdue it goes to the supervisors, in seconds.
LANDED_DUE_SOON_S = env.int("LANDED_DUE_SOON_S", 1_800)
LANDED_ESCALATE_S = env.int("LANDED_ESCALATE_S", 14_400)

# How long a decision can be taken back before it takes effect, in seconds.
LANDED_UNDO_S = env.int("LANDED_UNDO_S", 0 if MODE == "test" else 15)
# How long a case may wait for somebody's answer at the longest, in days.
LANDED_LONGEST_WAIT_DAYS = env.int("LANDED_LONGEST_WAIT_DAYS", 30)
# How often the clock sweeps the database, in seconds.
LANDED_CLOCK_S = env.float("LANDED_CLOCK_S", 1.0)
# How many sendings one worker process has under way at once.
LANDED_SEND_SLOTS = env.int("LANDED_SEND_SLOTS", 8)
# How many requests of one web process may wait (Prefer: wait) at once; each keeps one of its threads.
LANDED_WAITERS = env.int("LANDED_WAITERS", 4)
# How many webhooks one clock process has under way at once.
LANDED_DELIVERY_SLOTS = env.int("LANDED_DELIVERY_SLOTS", 8)
# Receivers of webhooks that may be reached although they are private, as host:port. For demos and tests only.
LANDED_PRIVATE_RECEIVERS: list[str] = env.list("LANDED_PRIVATE_RECEIVERS", [])

# Where the clock writes signed anchors over all histories, how often (seconds), and how many it keeps. Empty: none.
LANDED_ANCHORS = env.str("LANDED_ANCHORS", str(DATA_DIR / "anchors") if MODE == "demo" else "")
LANDED_ANCHOR_EVERY_S = env.int("LANDED_ANCHOR_EVERY_S", 3_600)
LANDED_ANCHORS_KEPT = env.int("LANDED_ANCHORS_KEPT", 48)
# The file with the private key that signs them; only clocks need it. And public ones that count when they are read.
LANDED_ANCHOR_KEY = env.str("LANDED_ANCHOR_KEY", str(DATA_DIR / "anchor.key") if MODE == "demo" else "")
LANDED_ANCHOR_PUBLIC_KEYS: list[str] = env.list("LANDED_ANCHOR_PUBLIC_KEYS", [])

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "%(asctime)s %(levelname)s %(name)s %(message)s"}},
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["console"], "level": env.str("LOG_LEVEL", "INFO")},
    # Of logins: who has to wait, and wrong passwords, names and addresses masked.
    "loggers": {"rq": {"level": "WARNING"}, "axes": {"level": "WARNING"}},
}
