import pytest
from django.core.servers.basehttp import WSGIServer

from tests.api.calling import Api, make_api

# The test server would refuse connections when more than ten arrive together; ours does not.
WSGIServer.request_queue_size = 128


@pytest.fixture
def api(db: None) -> Api:
    return make_api()
