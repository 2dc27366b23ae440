import pytest

from tests.api.calling import Api, make_api


@pytest.fixture
def api(db: None) -> Api:
    return make_api()
