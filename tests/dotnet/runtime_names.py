"""Takes the runtime's spelling of a method apart and says what cdacq has to call it.

CoreCLR writes  ret [Module] Ns.Outer`1+Inner`1[inst]::Method(sig)[Tier]
cdacq writes    Ns.Outer<T>.Inner<U>.Method<V>(int, V)

The names of formal type parameters are not in the runtime's form, so that the
expectation is a pattern and not a text.
"""

import re
from dataclasses import dataclass
from functools import lru_cache

DYNAMIC = "dynamicClass"
_FORMAL = r"[^(),.]+"
_TIER = re.compile(r"\[((?:PreJI[Tt]|[A-Z][A-Za-z0-9]+)(?:-cold)?)\]$")
_MODULE = re.compile(r"(?:^| )\[([^\[\]]*)\] ")
_STUB = re.compile(r"stub(<\d+>)? ")  # numbered by 8.0 and 9.0
_CLOSED_BY = {")": "(", "]": "["}


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


def _formals(arity):
    return "<" + ", ".join([_FORMAL] * arity) + ">" if arity else ""


def _type_pattern(name):
    base, tick, arity = name.rpartition("`")
    if tick and arity.isdecimal():
        return re.escape(base) + _formals(int(arity))
    return re.escape(name)


@dataclass(frozen=True)
class Name:
    """A method of the runtime's own spelling."""
    module: str
    types: tuple  # metadata names from the outside in; the first carries the namespace
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
        if owner.endswith("]"):
            owner = owner[:opening(owner)]
        types = tuple(re.sub(r"\\(.)", r"\1", part) for part in re.split(r"(?<!\\)\+", owner))
        signature = text[opening(text) + 1:-1]
        is_generic = "!!" in signature or "!!" in text[:module.start()]
        return Name(module[1], types, method, signature, is_generic, tier)

    @property
    def is_dynamic(self):
        """Dynamic methods and IL stubs: cdacq's parameter list is not compared."""
        return self.types == (DYNAMIC,)

    @property
    def qualified(self):
        """`Type+Nested::Method`, as the target lists what it released."""
        return f"{'+'.join(self.types)}::{self.method}"

    @property
    def pattern(self):
        """What cdacq's whole name must match; the group is the parameter list."""
        types = r"\.".join(_type_pattern(name) for name in self.types)
        generics = "" if self.is_dynamic else f"<{_FORMAL}(?:, {_FORMAL})*>" + ("" if self.is_generic else "|")
        return re.compile(rf"{types}\.{re.escape(self.method)}(?:{generics})\((.*)\)", re.DOTALL)

    def fault(self, answer):
        """What is wrong with cdacq's name: None, "name" or "parameters"."""
        found = self.pattern.fullmatch(answer or "")
        if found is None:
            return "name"
        if not self.is_dynamic and count_parameters(found[1]) != count_parameters(self.signature):
            return "parameters"
        return None
