"""
What may be flipped in SQL: in the text of a `.sql` file, or in the statements of a module.

Nothing is parsed but what a flip needs. A flip that makes no sense to the database is killed by
the first test that sends it, and costs no more than that.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from mutants_edits import Edit, span_in_bytes

_SQL = re.compile(r"\b(SELECT|UPDATE|DELETE|INSERT|WHERE|AND|OR|IS NULL|IS NOT NULL)\b")
_QUOTE = re.compile(r"""[A-Za-z]*(\"{3}|'{3}|"|')""")
_TOKEN = re.compile(
    r"""
      (?P<skip>\s+|--[^\n]*)
    | (?P<operand>
          '[^']*' | %\(\w+\)b | :\w+ | \$\d+ | \?
        | (?:\w+|\{(?:[^{}]|\{[^{}]*\})*\}|"[^"]*")(?:\.\w+|\.\*)* )
    | (?P<sign><=|>=|<>|!=|<|>|=|\+|-|::|\|\||.)
    """,
    re.VERBOSE | re.DOTALL,
)
_COMPARED = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "=": "<>", "<>": "=", "!=": "="}
_SWAPPED = {"min": "max", "max": "min", "LEAST": "GREATEST", "GREATEST": "LEAST"}
_NEGATED = {"EXISTS", "IN", "LIKE", "BETWEEN"}
_ENDS_ORDER = {"LIMIT", "FOR", "OFFSET", "ROWS", ")", ";"}
_ENDS_SET = {"FROM", "WHERE", "RETURNING", "WHEN", "ON", ";"}


@dataclass(frozen=True)
class Token:
    """A word, value or sign, and where it stands."""

    text: str
    begin: int
    end: int
    depth: int


def edits_of_statements(source: str) -> Iterator[tuple[ast.expr, Edit]]:
    """Yield each flip in each SQL literal of a module, with the literal; offsets in bytes."""
    for node in _literals(ast.parse(source)):
        begin, end = span_in_bytes(source, node)
        literal = source.encode()[begin:end].decode()
        quote = _QUOTE.match(literal)
        if quote is None or not _SQL.search(literal):
            continue
        first, last = quote.end(), len(literal) - len(quote[1])
        for edit in edits(literal[first:last]):
            shift = begin + first
            yield node, Edit(edit.begin + shift, edit.end + shift, edit.text, edit.what)


def edits(text: str) -> Iterator[Edit]:
    """Yield each flip of `text`, in order."""
    tokens = list(_tokens(text))
    for index, token in enumerate(tokens):
        for begin, end, new in _flips(text, tokens, index):
            around = " ".join(t.text for t in tokens[max(0, index - 3) : index + 4])
            what = f"{around} -> {' '.join(new.split()) or 'without'}"
            yield Edit(begin, end, new, what)
        if token.text == "BETWEEN":
            yield from _edges(text, tokens, index)
        elif token.text == "BY" and tokens[index - 1].text == "ORDER":
            yield from _orders(text, tokens, index)
        elif token.text == "IN" and index + 1 < len(tokens) and tokens[index + 1].text == "(":
            yield from _members(tokens, index)


def _literals(tree: ast.AST) -> Iterator[ast.expr]:
    """Yield string literals, without docstrings and without what stands within an f-string."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            continue
        if isinstance(node, ast.JoinedStr):
            yield node
        elif isinstance(node, ast.Constant):
            if isinstance(node.value, str):
                yield node
        else:
            yield from _literals(node)


def _tokens(text: str) -> Iterator[Token]:
    depth = 0
    for match in _TOKEN.finditer(text):
        if match.lastgroup == "skip":
            continue
        if match[0] == ")":
            depth -= 1
        yield Token(match[0], match.start(), match.end(), depth)
        if match[0] == "(":
            depth += 1


def _flips(text: str, tokens: list[Token], index: int) -> Iterator[tuple[int, int, str]]:
    token = tokens[index]
    after = [t.text for t in tokens[index + 1 : index + 4]]
    if token.text in _COMPARED and not _sets(tokens, index):
        yield token.begin, token.end, _COMPARED[token.text]
    elif token.text in ("AND", "OR") and not _of_between(tokens, index):
        yield token.begin, token.end, "OR" if token.text == "AND" else "AND"
    elif token.text == "+":
        yield token.begin, token.end, "-"
    elif token.text in _SWAPPED and after[:1] == ["("]:
        yield token.begin, token.end, _SWAPPED[token.text]
    elif token.text == "COALESCE":
        yield from _alternatives(text, tokens, index)
    elif token.text in ("IS", "NOT", "EXISTS"):
        yield from _negations(tokens, index)
    else:
        yield from _clauses(tokens, index)


def _negations(tokens: list[Token], index: int) -> Iterator[tuple[int, int, str]]:
    token, before, after = tokens[index], tokens[index - 1].text, tokens[index + 1].text
    if token.text == "IS" and after == "NULL":
        yield token.end, token.end, " NOT"
    elif token.text == "NOT" and (after in _NEGATED or (before == "IS" and after == "NULL")):
        yield token.begin, token.end, ""
    elif token.text == "EXISTS" and before != "NOT":
        yield token.begin, token.begin, "NOT "


def _clauses(tokens: list[Token], index: int) -> Iterator[tuple[int, int, str]]:
    token = tokens[index]
    after = [t.text for t in tokens[index + 1 : index + 4]]
    if token.text == "LIMIT":
        end = tokens[index + 1].end
        yield token.begin, end, ""
        yield end, end, " + 1"
        yield end, end, " - 1"
    elif token.text == "SKIP":
        yield token.begin, tokens[index + 1].end, ""
    elif token.text == "FOR" and after[:1] == ["UPDATE"]:
        last = index + (3 if after[1:2] == ["SKIP"] else 1)
        yield token.begin, tokens[last].end, ""
    elif token.text == "ON" and after == ["CONFLICT", "DO", "NOTHING"]:
        yield token.begin, tokens[index + 3].end, ""


def _sets(tokens: list[Token], index: int) -> bool:
    """Whether the `=` at `index` gives a value to a column or a setting."""
    depth = tokens[index].depth
    cases = 0
    for before in range(index - 1, -1, -1):
        token = tokens[before]
        if token.depth < depth:
            return tokens[before - 1].text == "WITH" and tokens[index + 1].text[0].isalnum()
        if token.depth == depth and token.text in ("CASE", "END"):
            cases += 1 if token.text == "END" else -1
        elif token.depth == depth and not cases:
            if token.text == "SET":
                return True
            if token.text in _ENDS_SET:
                return False
    return False


def _of_between(tokens: list[Token], index: int) -> bool:
    depth = tokens[index].depth
    for token in reversed(tokens[:index]):
        if token.depth < depth or (token.depth == depth and token.text in ("AND", "OR", "WHERE")):
            return False
        if token.depth == depth and token.text == "BETWEEN":
            return True
    return False


def _alternatives(text: str, tokens: list[Token], index: int) -> Iterator[tuple[int, int, str]]:
    inner, close = _inside(tokens, index + 1)
    for part in _parts(inner):
        yield tokens[index].begin, close.end, text[part[0].begin : part[-1].end]


def _edges(text: str, tokens: list[Token], index: int) -> Iterator[Edit]:
    """Leave each end of a BETWEEN out."""
    first = index - 1
    if tokens[first].text == ")":
        while tokens[first].depth > tokens[index].depth or tokens[first].text != "(":
            first -= 1
        first -= 1
    value = text[tokens[first].begin : tokens[index - 1].end]
    middle = next(
        i
        for i in range(index, len(tokens))
        if tokens[i].text == "AND" and tokens[i].depth == tokens[index].depth
    )
    low = text[tokens[index + 1].begin : tokens[middle - 1].end]
    high = tokens[middle + 1]
    for signs in ((">", "<="), (">=", "<")):
        new = f"({value} {signs[0]} {low} AND {value} {signs[1]} {high.text})"
        what = f"{value} BETWEEN {low} AND {high.text} -> {signs[0]} {signs[1]}"
        yield Edit(tokens[first].begin, high.end, new, what)


def _orders(text: str, tokens: list[Token], index: int) -> Iterator[Edit]:
    """Turn each column of an order round, and leave each out."""
    depth = tokens[index].depth
    ordered = []
    for token in tokens[index + 1 :]:
        if token.depth < depth or (token.depth == depth and token.text in _ENDS_ORDER):
            break
        ordered.append(token)
    parts = _parts(ordered)
    for number, part in enumerate(parts):
        words = text[part[0].begin : part[-1].end]
        what = f"ORDER BY {' '.join(text[ordered[0].begin : ordered[-1].end].split())}"
        turned = words.removesuffix(" DESC") if words.endswith(" DESC") else words + " DESC"
        yield Edit(part[0].begin, part[-1].end, turned, f"{what} -> {turned}")
        if len(parts) == 1:
            yield Edit(tokens[index - 1].begin, part[-1].end, "", f"{what} -> without")
        elif number:
            begin = parts[number - 1][-1].end
            yield Edit(begin, part[-1].end, "", f"{what} -> without {words}")
        else:
            yield Edit(part[0].begin, parts[1][0].begin, "", f"{what} -> without {words}")


def _members(tokens: list[Token], index: int) -> Iterator[Edit]:
    """Leave each value out that a list of values names."""
    inner, _ = _inside(tokens, index + 1)
    values = [token for token in inner if token.text != ","]
    if len(values) < 2 or not all(t.text[0] in "'0123456789" for t in values):  # noqa: PLR2004
        return
    for token, following in pairwise([*values, None]):
        assert token is not None
        begin = token.begin if following else values[-2].end
        end = following.begin if following else token.end
        yield Edit(begin, end, "", f"{tokens[index - 1].text} IN -> without {token.text}")


def _inside(tokens: list[Token], opening: int) -> tuple[list[Token], Token]:
    """Return what stands in the parentheses that open at `opening`, and their end."""
    depth = tokens[opening].depth
    inner: list[Token] = []
    for token in tokens[opening + 1 :]:
        if token.depth == depth:
            return inner, token
        inner.append(token)
    raise AssertionError("a parenthesis is never closed")


def _parts(tokens: list[Token]) -> list[list[Token]]:
    """Cut tokens at the commas between them."""
    parts: list[list[Token]] = [[]]
    for token in tokens:
        if token.text == "," and token.depth == tokens[0].depth:
            parts.append([])
        else:
            parts[-1].append(token)
    return parts
