"""Takes the runtime's spelling of a method apart and says what cdacq has to call it.

CoreCLR writes  ret [Module] Ns.Outer`1+Inner`1[inst]::Method(sig)[Tier]
cdacq writes    Ns.Outer<int>.Inner<U>.Method<V>(int, V)

The names of formal type parameters, which stand for System.__Canon, and the arguments of generic methods are not in
the runtime's form, so that the expectation is a pattern and not a text.
"""

import re
from dataclasses import dataclass
from functools import cached_property, lru_cache

DYNAMIC = "dynamicClass"
_FORMAL = r"[^(),.]+"
_KEYWORDS = {"Void": "void", "Boolean": "bool", "Char": "char", "SByte": "sbyte", "Byte": "byte", "Int16": "short",
             "UInt16": "ushort", "Int32": "int", "UInt32": "uint", "Int64": "long", "UInt64": "ulong", "Single": "float",
             "Double": "double", "String": "string", "Object": "object", "IntPtr": "nint", "UIntPtr": "nuint"}
_OPERATORS = {"UnaryPlus": "+", "UnaryNegation": "-", "LogicalNot": "!", "OnesComplement": "~", "Increment": "++",
              "Decrement": "--", "True": "true", "False": "false", "Addition": "+", "Subtraction": "-", "Multiply": "*",
              "Division": "/", "Modulus": "%", "BitwiseAnd": "&", "BitwiseOr": "|", "ExclusiveOr": "^", "LeftShift": "<<",
              "RightShift": ">>", "UnsignedRightShift": ">>>", "Equality": "==", "Inequality": "!=", "LessThan": "<",
              "GreaterThan": ">", "LessThanOrEqual": "<=", "GreaterThanOrEqual": ">="}
_TIER = re.compile(r"\[((?:PreJI[Tt]|[A-Z][A-Za-z0-9]+)(?:-cold)?)\]$")
_MODULE = re.compile(r"(?:^| )\[([^\[\]]*)\] ")
_STUB = re.compile(r"stub(<\d+>)? ")  # numbered by 8.0 and 9.0
_CLOSED_BY = {")": "(", "]": "["}


@lru_cache(maxsize=None)  # as below: of one process's names, asked of target after target
def split_tiers(text):
    """(name without tiers, tier). A cold part's name is written twice:
    `X[PreJIT]X[PreJit-cold]`."""
    found = _TIER.search(text)
    if found is None:
        return text, ""
    name, tier = text[:found.start()], found[1]
    if tier == "PreJit-cold":
        half, middle = divmod(len(name) - len("[PreJIT]"), 2)
        if middle == 0 and name == f"{name[:half]}[PreJIT]{name[:half]}":
            name = name[:half]
    return name, tier


@lru_cache(maxsize=None)
def opening(text):
    """Index of the bracket that the last character of text closes, or -1.
    Brackets behind a backslash belong to a name."""
    close = text[-1:]
    depth = 0
    for i in range(len(text) - 1, -1, -1):
        if text[i] not in (close, _CLOSED_BY.get(close)) or (i and text[i - 1] == "\\"):
            continue
        depth += 1 if text[i] == close else -1
        if depth == 0:
            return i
    return -1


@lru_cache(maxsize=None)
def count_parameters(signature):
    """The number of commas outside of any bracket, plus one."""
    if not signature.strip():
        return 0
    depth, count = 0, 1
    for character in signature:
        if character in "<([":
            depth += 1
        elif character in ">)]":
            depth -= 1
        elif character == "," and depth == 0:
            count += 1
    return count


def _levels(levels, arguments):
    """The pattern of a type of these levels, as reflection names them, over these patterns."""
    arguments, text = list(arguments), []
    for level in levels:
        base, tick, arity = level.rpartition("`")
        count = int(arity) if tick and arity.isdecimal() else 0
        own = [arguments.pop(0) if arguments else _FORMAL for _ in range(count)]
        text.append(re.escape(base if count else level) + ("<" + ", ".join(own) + ">" if own else ""))
    return r"\.".join(text)


class _Reflection:
    """Types as the runtime writes them, Ns.Outer`1+Inner[System.Int32[],System.__Canon], to patterns of the C# names.

    A tuple is kept by its elements, for the longer tuple of which it is the rest.
    """

    def __init__(self, text):
        self.text, self.at, self.tuples = text, 0, {}

    def levels(self):
        name = re.compile(r"(?:[^\\\[\],*&]|\\.)*").match(self.text, self.at)
        self.at = name.end()
        return [re.sub(r"\\(.)", r"\1", part) for part in re.split(r"(?<!\\)\+", name[0])]

    def arguments(self):
        """What the brackets after a name contain; none if they are an array's."""
        found = []
        if not re.compile(r"\[(?![\],*])").match(self.text, self.at):
            return found
        while self.text[self.at] in "[,":
            self.at += 1
            with_assembly = self.text[self.at] == "["
            self.at += with_assembly
            found.append(self.type())
            if with_assembly:
                self.at = self.text.index("]", self.at) + 1
        self.at += 1
        return found

    def type(self):
        levels = self.levels()
        arguments = self.arguments()
        text = self.named(levels, arguments)
        arrays = []
        while found := re.compile(r"\[[,*]*\]|\*|&").match(self.text, self.at):
            self.at = found.end()
            if found[0][0] == "[":
                arrays.insert(0, re.escape(found[0]))
                continue
            text, arrays = text + "".join(arrays) + re.escape(found[0]), []
        return text + "".join(arrays)

    def named(self, levels, arguments):
        name, count = levels[0], len(arguments)
        if len(levels) > 1 or not name.startswith("System."):
            return _levels(levels, arguments)
        if name == "System.__Canon":
            return _FORMAL
        if not count:
            return _KEYWORDS.get(name[7:], re.escape(name))
        if name == "System.Nullable`1":
            return arguments[0] + r"\?"
        if name == f"System.ValueTuple`{count}":
            rest = self.tuples.get(arguments[7]) if count == 8 else None
            elements = arguments[:7] + (rest or arguments[7:])
            text = r"\(" + ", ".join(elements) + r"\)"
            if count == 1 or (count == 8 and not rest):
                text = _levels(levels, arguments)
            self.tuples[text] = elements
            return text
        return _levels(levels, arguments)


def arguments_fault(sos, csharp):
    """Whether the arguments of a method, Ns.T.M[[System.Int32, Asm]](Int32), are others in C#. None: it has none."""
    before = sos[:opening(sos)]
    if not sos.endswith(")") or not before.endswith("]]"):
        return None
    arguments = _Reflection(before[opening(before):]).arguments()
    return not re.search("<" + ", ".join(arguments) + r">\(", csharp)


def _member(name, count, result):
    """The pattern of a method's own name; `count` is that of its parameters, `result` the pattern of conversions."""
    before = ""
    explicit = re.fullmatch(r"(.*[^.])\.([^.<>]+)", name)
    if explicit and not name.startswith("<"):
        before, name = explicit.groups()
        generic = before.find("<")
        before = (re.escape(before) if generic < 0 else re.escape(before[:generic]) + "<.*>") + r"\."
    verb, _, rest = name.partition("_")
    checked, rest = ("checked ", rest[7:]) if verb == "op" and rest.startswith("Checked") else ("", rest)
    plain = re.escape(name)
    if verb in ("get", "set") and rest:
        indexes = count - (verb == "set")
        verb = "(?:set|init)" if verb == "set" else verb
        plain += rf"|{re.escape(rest)}\.{verb}" if not indexes else rf"|(?:this|{re.escape(rest)})\[.+\]\.{verb}"
    elif verb in ("add", "remove") and rest:
        plain += rf"|{re.escape(rest)}\.{verb}"
    elif verb == "op" and rest in ("Implicit", "Explicit"):
        plain = f"{rest.lower()} operator {checked}{result}"
    elif verb == "op" and rest in _OPERATORS:
        plain += f"|operator {checked}{re.escape(_OPERATORS[rest])}"
    return f"{before}(?:{plain})"


@dataclass(frozen=True)
class Name:
    """A method of the runtime's own spelling."""
    module: str
    types: tuple  # metadata names from the outside in; the first carries the namespace
    owner: str  # the same with what the type is instantiated over
    method: str
    signature: str
    is_generic: bool  # surely generic; the runtime does not tell unless the signature needs it
    tier: str

    @staticmethod
    @lru_cache(maxsize=None)
    def parse(text):
        """None where the text is not a method's name, for instance a stub's."""
        text, tier = split_tiers(text)
        module = _MODULE.search(text)
        if _STUB.match(text) or module is None or not text.endswith(")"):
            return None
        owner, colons, method = text[module.end():opening(text)].partition("::")
        if not colons:
            return None
        bare = owner[:opening(owner)] if owner.endswith("]") else owner
        types = tuple(re.sub(r"\\(.)", r"\1", part) for part in re.split(r"(?<!\\)\+", bare))
        signature = text[opening(text) + 1:-1]
        is_generic = "!!" in signature or "!!" in text[:module.start()]
        return Name(module[1], types, owner, method, signature, is_generic, tier)

    @property
    def is_dynamic(self):
        """Dynamic methods and IL stubs: cdacq's parameter list is not compared."""
        return self.types == (DYNAMIC,)

    @property
    def qualified(self):
        """`Type+Nested::Method`, as the target lists what it released."""
        return f"{'+'.join(self.types)}::{self.method}"

    @cached_property
    def pattern(self):
        """What cdacq's whole name must match; the group is the parameter list."""
        if self.is_dynamic:
            return re.compile(rf"{DYNAMIC}\.{re.escape(self.method)}\((.*)\)", re.DOTALL)
        reader = _Reflection(self.owner)
        levels = reader.levels()
        owner = _levels(levels, reader.arguments())
        generics = "<.+>" + ("" if self.is_generic else "|")
        member = _member(self.method, count_parameters(self.signature), ".+?")  # types have parentheses, too
        return re.compile(rf"{owner}\.{member}(?:{generics})\((.*)\)", re.DOTALL)

    def fault(self, answer):
        """What is wrong with cdacq's name: None, "name" or "parameters"."""
        found = self.pattern.fullmatch(answer or "")
        if found is None:
            return "name"
        if not self.is_dynamic and count_parameters(found[1]) != count_parameters(self.signature):
            return "parameters"
        return None
