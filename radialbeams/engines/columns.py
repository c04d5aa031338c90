"""Columns of image bytes in Arrow tables: plain binary, or a struct with a field `bytes`."""

from __future__ import annotations

from typing import Any

FIELD = "bytes"  # of a struct that also has a path, as in some data sets


def image_column(schema: Any, wanted: str | None = None) -> str:
    """The name of the only column that can hold images, or `wanted` if it can hold images."""
    names = [field.name for field in schema if _holds_bytes(field.type)]
    if wanted is not None:
        names = [name for name in names if name == wanted]
    if len(names) == 1:
        return str(names[0])
    columns = ", ".join(f"{field.name} ({field.type})" for field in schema)
    expected = "one column of image bytes" if wanted is None else f"image bytes in column {wanted}"
    raise ValueError(f"Expected {expected}; got {columns}. Choose the right column with --column.")


def bytes_of(column: Any) -> list[bytes | None]:
    import pyarrow as pa
    import pyarrow.compute as pc

    inner = pc.struct_field(column, FIELD) if pa.types.is_struct(column.type) else column
    contents: list[bytes | None] = inner.to_pylist()
    return contents


def with_bytes(rows: Any, name: str, contents: list[bytes | None]) -> Any:
    """The record batch with the bytes in one column replaced."""
    import pyarrow as pa
    import pyarrow.compute as pc

    old = rows.column(name)
    if pa.types.is_struct(old.type):
        fields = list(old.type)
        parts = [
            pa.array(contents, field.type)
            if field.name == FIELD
            else pc.struct_field(old, field.name)
            for field in fields
        ]
        new = pa.StructArray.from_arrays(parts, fields=fields, mask=pc.is_null(old))
    else:
        new = pa.array(contents, old.type)
    index = rows.schema.get_field_index(name)
    columns = [new if n == index else column for n, column in enumerate(rows.columns)]
    return pa.record_batch(columns, schema=rows.schema)


def _holds_bytes(kind: Any) -> bool:
    import pyarrow as pa

    if pa.types.is_struct(kind):
        index = kind.get_field_index(FIELD)
        return index >= 0 and _holds_bytes(kind.field(index).type)
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))
