"""The wire format of protobuf messages, for scripts and tests that read or write a few fields of a message without its
definition. https://protobuf.dev/programming-guides/encoding/"""
from typing import Iterator, NamedTuple, Union

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5


class Field(NamedTuple):
    number: int
    value: Union[int, bytes]  # a varint without sign, otherwise the payload
    whole: bytes  # tag, size and payload


def varint(value: int) -> bytes:
    """The encoding of an integer from 0 to 2^64 - 1."""
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def field(number: int, value: Union[int, bytes, str]) -> bytes:
    """The encoding of a field: a varint for an int, otherwise length-delimited."""
    if isinstance(value, int):
        return varint(number << 3 | VARINT) + varint(value)
    data = value.encode() if isinstance(value, str) else bytes(value)
    return varint(number << 3 | BYTES) + varint(len(data)) + data


def fields(message: bytes) -> Iterator[Field]:
    """The fields of a message (bytes or a memoryview, whose payloads are views) in their order. ValueError: a group, or the message is cut off."""
    at = 0

    def number() -> int:
        nonlocal at
        value = shift = 0
        while True:
            if at == len(message):
                raise ValueError("the message ends within a field")
            byte = message[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(message):
        begin, tag = at, number()
        if tag & 7 == VARINT:
            value: Union[int, bytes] = number()
        elif tag & 7 in (FIXED64, BYTES, FIXED32):
            size = number() if tag & 7 == BYTES else 8 if tag & 7 == FIXED64 else 4
            value = message[at : at + size]
            at += size
        else:
            raise ValueError(f"field {tag >> 3} has wire type {tag & 7} (expected 0, 1, 2 or 5)")
        if at > len(message):
            raise ValueError("the message ends within a field")
        yield Field(tag >> 3, value, message[begin:at])
