"""What addresses may hold."""

from django.urls import register_converter

_BIGGEST = 2**63


class RowId:
    """The primary key of a row. What no database can hold is no address of ours: 404, before anything asks for it."""

    regex = "[0-9]{1,19}"

    def to_python(self, value: str) -> int:
        """Raises ValueError, which says that the address is none."""
        if (found := int(value)) >= _BIGGEST:
            raise ValueError(value)
        return found

    def to_url(self, value: int | str) -> str:
        return str(value)


def register() -> None:
    """Makes `<row:…>` known; called once, by the module of the addresses."""
    register_converter(RowId, "row")
