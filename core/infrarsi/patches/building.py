"""Building new expressions around old ones, parentheses where they are needed."""

import libcst as cst


def expression(code: str) -> cst.BaseExpression:
    """The parsed expression."""
    return cst.parse_expression(code)


def statement(code: str) -> cst.BaseStatement:
    """The parsed statement, one line or a block."""
    return cst.parse_statement(code)


def with_method(base: cst.BaseExpression, call: str) -> cst.Call:
    """`base.call`, as in `with_method(logits, "float()")`."""
    node = cst.ensure_type(cst.parse_expression(f"_.{call}"), cst.Call)
    func = cst.ensure_type(node.func, cst.Attribute)
    return node.with_changes(func=func.with_changes(value=as_primary(base)))


def as_primary(node: cst.BaseExpression) -> cst.BaseExpression:
    """The expression fit to stand before a dot."""
    if node.lpar or isinstance(node, cst.Name | cst.Attribute | cst.Call | cst.Subscript):
        return node
    return node.with_changes(lpar=(cst.LeftParen(),), rpar=(cst.RightParen(),))


def bare(node: cst.BaseExpression) -> cst.BaseExpression:
    """The expression without outer parentheses, unless it is a tuple or spans lines."""
    if isinstance(node, cst.Tuple | cst.GeneratorExp | cst.ConcatenatedString):
        return node
    return node.with_changes(lpar=(), rpar=())


_LONG = 70
"""A call longer than this gets its arguments on a line of their own."""


def call(func: str, args: list[tuple[str | None, cst.BaseExpression]]) -> cst.Call:
    """`func(a, key=b)`, on one line or, where it is long, on three."""
    node = cst.Call(func=expression(func), args=[argument_of(key, value) for key, value in args])
    if len(cst.Module(body=()).code_for_node(node)) <= _LONG:
        return node
    inner = cst.ParenthesizedWhitespace(indent=True, last_line=cst.SimpleWhitespace("    "))
    last = node.args[-1].with_changes(whitespace_after_arg=cst.ParenthesizedWhitespace(indent=True))
    return node.with_changes(whitespace_before_args=inner, args=[*node.args[:-1], last])


def argument_of(keyword: str | None, value: cst.BaseExpression) -> cst.Arg:
    """One argument, spaced as people write it."""
    return cst.Arg(
        value=bare(value) if keyword is None else value,
        keyword=None if keyword is None else cst.Name(keyword),
        equal=cst.AssignEqual(
            whitespace_before=cst.SimpleWhitespace(""), whitespace_after=cst.SimpleWhitespace("")
        )
        if keyword is not None
        else cst.MaybeSentinel.DEFAULT,
    )


def add_keyword(node: cst.Call, keyword: str, value: str) -> cst.Call:
    """The call with `keyword=value` as its last argument, laid out like the others."""
    new = argument_of(keyword, expression(value))
    args = list(node.args)
    if not args:
        return node.with_changes(args=[new])
    last = args[-1]
    before = _after_comma(args[-2].comma) if len(args) > 1 else node.whitespace_before_args
    has_comma = isinstance(last.comma, cst.Comma)
    closing = _after_comma(last.comma) if has_comma else last.whitespace_after_arg
    joint, closing = _joint(before, closing)
    if has_comma:
        new = new.with_changes(comma=cst.Comma(whitespace_after=closing))
    else:
        new = new.with_changes(whitespace_after_arg=closing)
        last = last.with_changes(whitespace_after_arg=cst.SimpleWhitespace(""))
    last = last.with_changes(comma=cst.Comma(whitespace_after=joint))
    return node.with_changes(args=[*args[:-1], last, new])


_Space = cst.BaseParenthesizableWhitespace


def _joint(before: _Space, closing: _Space) -> tuple[_Space, _Space]:
    """(space between the last argument and the new one, space behind the new one).

    A comment behind the last argument stays behind it.
    """
    if not isinstance(closing, cst.ParenthesizedWhitespace):
        if isinstance(before, cst.ParenthesizedWhitespace):
            return _without_comments(before), closing
        return cst.SimpleWhitespace(" "), closing
    if isinstance(before, cst.ParenthesizedWhitespace):
        joint = closing.with_changes(indent=before.indent, last_line=before.last_line)
        return joint, _without_comments(closing)
    if closing.first_line.comment is None:
        return cst.SimpleWhitespace(" "), closing
    return closing, _without_comments(closing)


def _without_comments(space: cst.ParenthesizedWhitespace) -> cst.ParenthesizedWhitespace:
    return space.with_changes(first_line=cst.TrailingWhitespace(), empty_lines=())


def _after_comma(comma: cst.Comma | cst.MaybeSentinel) -> _Space:
    return comma.whitespace_after if isinstance(comma, cst.Comma) else cst.SimpleWhitespace("")
