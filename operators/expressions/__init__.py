r"""The small typed expression language of `filter.expr` and `columns.map`.

    score >= 0.5 and lang in ["en", "zh"] and not contains(lower(text), "lorem ipsum")

* Literals: `12`, `0.5`, `1e-3`, `"text"` or `'text'` (escapes `\n \t \r \\ \" \'`), `true`, `false`, `null`.
* Columns: a bare name, or any name between backticks. There are no attributes, indices or code of any kind.
* `+ - * / %` on numbers (`/` gives a fraction, a division by zero gives null), `+` on texts joins them.
* `== != < <= > >=`, `in [...]`, `not in [...]`, `is null`, `is not null`, `and`, `or`, `not`, parentheses.
* Functions: see `types.FUNCTIONS`. Patterns of `matches` are RE2-like: no look-around, no back-references, linear time.

Null follows SQL's three-valued logic: anything compared or computed with null is null, `null and false` is false,
`null or true` is true, `not null` is null. NaN counts as null. An expression is lexed, parsed, type-checked against
the columns of the plan and only then compiled to a polars expression; each error gives the character it is at.
"""

from datamill.operators.expressions.compiler import evaluate
from datamill.operators.expressions.parser import parse
from datamill.operators.expressions.syntax import Node, columns_of, render
from datamill.operators.expressions.types import Kind, kind_of, kinds_of, type_of

__all__ = ["Kind", "Node", "columns_of", "evaluate", "kind_of", "kinds_of", "parse", "render", "type_of"]
