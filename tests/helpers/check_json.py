#!/usr/bin/env python3
"""Validates JSON documents against a schema of docs/schemas.

check_json.py SCHEMA DOCUMENT…           a DOCUMENT is a file, - is standard input
check_json.py --documented PAGE… SCHEMA  every key of the schema is in `…` on one of the pages

Supports the keywords that docs/schemas uses and refuses others. Where the package jsonschema is installed, it must
agree, and the schema itself must be valid.
"""
import json
import os
import re
import sys

NUMBER = (int, float)
TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None), "number": NUMBER, "integer": int}
KEYWORDS = {"$schema", "$defs", "title", "description", "$ref", "type", "required", "properties", "additionalProperties",
            "items", "enum", "oneOf", "anyOf", "minimum", "maximum", "minItems", "maxItems", "pattern"}


def load(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def is_type(value, name):
    if isinstance(value, bool):
        return name == "boolean"
    return isinstance(value, TYPES[name])


class Schema:
    def __init__(self, path):
        self.folder, self.root = os.path.dirname(path), load(path)

    def resolve(self, reference):
        if reference.startswith("#/$defs/"):
            return self, self.root["$defs"][reference[8:]]
        other = Schema(os.path.join(self.folder, reference))
        return other, other.root

    def each(self, schema):
        """The schema and all within it."""
        unknown = set(schema) - KEYWORDS
        if unknown:
            raise SystemExit(f"keywords that are not supported: {unknown}")
        yield schema
        parts = list(schema.get("properties", {}).values()) + list(schema.get("$defs", {}).values())
        parts += schema.get("oneOf", []) + schema.get("anyOf", [])
        parts += [schema[k] for k in ("items", "additionalProperties") if isinstance(schema.get(k), dict)]
        for part in parts:
            yield from self.each(part)

    def errors(self, value, schema=None, where="$"):
        schema = self.root if schema is None else schema
        if "$ref" in schema:
            other, target = self.resolve(schema["$ref"])
            yield from other.errors(value, target, where)
        types = schema.get("type", [])
        types = [types] if isinstance(types, str) else types
        if types and not any(is_type(value, t) for t in types):
            yield f"{where}: expected {' or '.join(types)}, got {json.dumps(value)[:80]}"
            return
        if "enum" in schema and value not in schema["enum"]:
            yield f"{where}: {json.dumps(value)} is none of {schema['enum']}"
        for key in ("oneOf", "anyOf"):
            found = [list(self.errors(value, part, where)) for part in schema.get(key, [])]
            matches = sum(not errors for errors in found)
            if found and (matches != 1 if key == "oneOf" else not matches):
                yield f"{where}: matches {matches} of {len(found)} forms: " + "; ".join(e[0] for e in found if e)
        if isinstance(value, NUMBER) and not isinstance(value, bool):
            if value < schema.get("minimum", value) or value > schema.get("maximum", value):
                yield f"{where}: {value} is out of range"
        if isinstance(value, str) and not re.search(schema.get("pattern", ""), value):
            yield f"{where}: {value!r} does not match {schema['pattern']}"
        if isinstance(value, list):
            if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)):
                yield f"{where}: {len(value)} elements"
            for i, item in enumerate(value):
                yield from self.errors(item, schema.get("items", {}), f"{where}[{i}]")
        if isinstance(value, dict):
            for key in schema.get("required", []):
                if key not in value:
                    yield f"{where}: no {key}"
            for key, item in value.items():
                part = schema.get("properties", {}).get(key, schema.get("additionalProperties", {}))
                if part is False:
                    yield f"{where}: unknown key {key}"
                else:
                    yield from self.errors(item, part, f"{where}.{key}")


def second_opinion(path, document):
    """Whether jsonschema finds the document valid; None without the package."""
    try:
        import jsonschema
        from referencing import Registry, Resource
        from referencing.jsonschema import DRAFT202012
    except ImportError:
        return None
    folder = os.path.dirname(path)
    registry = Registry(retrieve=lambda uri: Resource(load(os.path.join(folder, os.path.basename(uri))), DRAFT202012))
    schema = load(path)
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema, registry=registry).is_valid(document)


def documented(pages, path):
    text = "\n".join(open(page, encoding="utf-8").read() for page in pages)
    text = re.sub(r"(?ms)^```.*?^```", "", text)
    words = set(re.findall(r"[A-Za-z0-9_]+", " ".join(re.findall(r"`([^`]+)`", text))))
    schema = Schema(path)
    keys = {key for part in schema.each(schema.root) for key in part.get("properties", {})}
    missing = sorted(keys - words)
    if missing:
        raise SystemExit(f"{path}: keys that {', '.join(pages)} do not explain: {' '.join(missing)}")


def main(arguments):
    if arguments[0] == "--documented":
        return documented(arguments[1:-1], arguments[-1])
    path, failed = arguments[0], False
    schema = Schema(path)
    list(schema.each(schema.root))
    for name in arguments[1:]:
        document = json.load(sys.stdin) if name == "-" else load(name)
        errors = list(schema.errors(document))
        for error in errors[:10]:
            print(f"{name}: {error}")
        opinion = second_opinion(path, document)
        if opinion not in (None, not errors):
            print(f"{name}: jsonschema says {'valid' if opinion else 'invalid'}")
        failed |= bool(errors) or opinion not in (None, not errors)
    return int(failed)


sys.exit(main(sys.argv[1:]))
