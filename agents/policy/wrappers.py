"""Commands that run other commands, and options that make harmless ones do so.

Data about well-known programs. What is not listed is judged by its own name only: a
rule that allows it, allows whatever it does.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

from .words import Word

SHELLS: Final = frozenset(
    {
        "sh",
        "bash",
        "dash",
        "zsh",
        "ksh",
        "mksh",
        "ash",
        "fish",
        "csh",
        "tcsh",
        "rbash",
        "rksh",
    }
)
_INPUT_FILES: Final = frozenset({"/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"})
_SHELL_VALUES: Final = frozenset({"--rcfile", "--init-file", "-O", "+O", "-o", "+o"})
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_]\w*\+?=")


@dataclass(frozen=True, slots=True)
class Wrapper:
    """How a program finds the command it is to run among its arguments."""

    flags: str = ""  # options without a value, separated by spaces
    values: str = ""  # options that take the next word as their value
    positionals: int = 0  # arguments before the command
    transparent: bool = False  # adds nothing that a rule would have to allow
    assignments: bool = False  # NAME=value may come before the command


_WRAPPERS: Final[Mapping[str, Wrapper]] = {
    "timeout": Wrapper(
        "-f --foreground -v --verbose -p --preserve-status",
        "-s --signal -k --kill-after",
        positionals=1,
        transparent=True,
    ),
    "time": Wrapper("-p", transparent=True),
    "nice": Wrapper("", "-n --adjustment", transparent=True),
    "ionice": Wrapper("-t --ignore", "-c --class -n --classdata", transparent=True),
    "command": Wrapper("-p", transparent=True),
    "builtin": Wrapper(transparent=True),
    "nohup": Wrapper(),
    "setsid": Wrapper("-c --ctty -f --fork -w --wait"),
    "stdbuf": Wrapper("", "-i --input -o --output -e --error"),
    "exec": Wrapper("-c -l", "-a"),
    "coproc": Wrapper(),
    "sudo": Wrapper(
        "-A -b -E -H -n -P -S -k -K --background --non-interactive --stdin "
        "--preserve-env --set-home --login -i -s --shell --reset-timestamp",
        "-u --user -g --group -h --host -p --prompt -C --close-from -r --role -t "
        "--type -T --command-timeout -U --other-user -D --chdir -R --chroot",
        assignments=True,
    ),
    "doas": Wrapper("-n -L -s", "-u -C -a"),
    "pkexec": Wrapper("--disable-internal-agent", "--user"),
    "env": Wrapper(
        "- -i --ignore-environment -0 --null -v --debug",
        "-u --unset -C --chdir",
        assignments=True,
    ),
    "chroot": Wrapper("", "", positionals=1),
    "flock": Wrapper(
        "-s -x -e -u -n -o -F --shared --exclusive --unlock --nonblock --close",
        "-w --timeout -E --conflict-exit-code",
        positionals=1,
    ),
    "taskset": Wrapper("-a", "", positionals=1),
    "chrt": Wrapper("-b -f -i -o -r", "", positionals=1),
    "unshare": Wrapper("-m -u -i -n -p -U -C -T -r -f --fork --map-root-user"),
    "nsenter": Wrapper("-a -m -u -i -n -p -U -C", "-t --target"),
    "strace": Wrapper("-f -ff -c -C -v -q -t -tt", "-e -o -p -s"),
    "ltrace": Wrapper("-f -c -C", "-e -o -s"),
    "busybox": Wrapper(),
    "toybox": Wrapper(),
    "caffeinate": Wrapper("-d -i -m -s -u", "-t -w"),
    "systemd-run": Wrapper("--user --scope -t -q --pty --wait", "-p --unit -u"),
    "xargs": Wrapper(
        "-0 --null -r --no-run-if-empty -t --verbose -p --interactive -x --exit",
        "-n --max-args -P --max-procs -L --max-lines -s --max-chars -d --delimiter "
        "-E -a --arg-file -I --replace",
    ),
}

# Of find, and of fd.
_EXEC_OPTIONS: Final = frozenset(
    {
        *("-exec", "-execdir", "-ok", "-okdir"),
        *("-x", "-X", "--exec", "--exec-batch"),
    }
)
_MAX_EXECS: Final = 20  # in one find; each may contain the next
_SSH: Final = Wrapper(
    "-4 -6 -A -a -C -f -G -g -K -k -M -N -n -q -s -T -t -tt -V -v -vv -X -x -Y -y",
    "-B -b -c -D -E -e -F -I -i -J -L -l -m -O -o -p -Q -R -S -W -w",
)


class TooTangledError(Exception):
    """A command contains more commands than anybody writes."""


@dataclass(slots=True)
class Unwrapped:
    """What a command would run, as far as it can be told."""

    commands: list[tuple[Word, ...]] = field(default_factory=list)
    scripts: list[str] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)
    transparent: bool = False


def unwrap(words: Sequence[Word]) -> Unwrapped:
    """The commands and scripts that a command hands on to be run."""
    found = Unwrapped()
    name = words[0].text.rpartition("/")[2]
    if name in SHELLS:
        _unwrap_shell(words, found)
    elif name in _SPECIAL:
        _SPECIAL[name](words, found)
    elif name in _WRAPPERS:
        _unwrap_command(name, words, found)
    found.doubts.extend(_find_escapes(name, words))
    return found


def reads_script_from_input(words: Sequence[Word]) -> bool:
    """Whether a shell takes its commands from its standard input."""
    if words[0].text.rpartition("/")[2] not in SHELLS:
        return False
    options, rest = _split_shell(words)
    if any(_is_c_option(option) for option in options):
        return False
    reads_input = any(option.text == "-s" for option in options)
    return not rest or rest[0].text in _INPUT_FILES or reads_input


def _is_c_option(word: Word) -> bool:
    return re.fullmatch(r"[-+][A-Za-z]*c[A-Za-z]*", word.text) is not None


def _split_shell(words: Sequence[Word]) -> tuple[list[Word], list[Word]]:
    index = 1
    while index < len(words) and words[index].text.startswith(("-", "+")):
        if words[index].text in ("-", "--"):
            return list(words[1:index]), list(words[index + 1 :])
        index += 2 if words[index].text in _SHELL_VALUES else 1
    return list(words[1:index]), list(words[index:])


def _unwrap_shell(words: Sequence[Word], found: Unwrapped) -> None:
    options, rest = _split_shell(words)
    if any(_is_c_option(option) for option in options):
        _add_script(rest[:1], found)
    elif reads_script_from_input(words):
        found.doubts.append("A shell takes its commands from its input.")
    if not all(word.static for word in (*options, *rest[:1])):
        found.doubts.append("A shell gets options that can't be told.")


def _add_script(words: Sequence[Word], found: Unwrapped) -> None:
    """Take words as shell code, joined by spaces as `eval` does."""
    if not words or not all(word.static for word in words):
        found.doubts.append("It runs a script that is only known when it runs.")
    found.scripts.append(" ".join(word.text for word in words))


def _unwrap_command(name: str, words: Sequence[Word], found: Unwrapped) -> None:
    if name == "command" and any(word.text in ("-v", "-V") for word in words[1:2]):
        return  # only tells where a command is
    wrapper = _WRAPPERS[name]
    index = _skip_options(wrapper, words, found)
    if name == "env":
        _add_split_strings(words[1 : index + 1], found)
    while (
        wrapper.assignments
        and index < len(words)
        and _ASSIGNMENT.match(words[index].text)
    ):
        found.doubts.append("It sets environment variables.")
        index += 1
    inner = tuple(words[index + wrapper.positionals :])
    if name == "xargs":
        inner = _with_input_arguments(words[1:index], inner)
    if inner:
        found.commands.append(inner)
        found.transparent = wrapper.transparent


def _skip_options(wrapper: Wrapper, words: Sequence[Word], found: Unwrapped) -> int:
    """The index of the first word that is no option; an unknown option is a doubt."""
    flags, values = wrapper.flags.split(), wrapper.values.split()
    index = 1
    while index < len(words):
        text = words[index].text
        if not words[index].static:
            found.doubts.append("A command is run with options that can't be told.")
        if text == "--":
            return index + 1
        if text != "-" and not text.startswith("-"):
            break
        if text in values:
            index += 2
            continue
        joined = any(
            text.startswith(f"{value}=" if value.startswith("--") else value)
            for value in values
        )
        if not joined and text not in flags and not _is_cluster(text, flags):
            found.doubts.append(f"The option {text} of a command is not known here.")
        index += 1
    return index


def _add_split_strings(options: Sequence[Word], found: Unwrapped) -> None:
    """`env -S` runs one string as a command line."""
    for index, option in enumerate(options):
        if option.text in ("-S", "--split-string"):
            _add_script(options[index + 1 : index + 2], found)
        elif option.text.startswith(("-S", "--split-string=")):
            text = option.text.removeprefix("-S").removeprefix("--split-string=")
            _add_script([Word(text, option.static)], found)


def _is_cluster(text: str, flags: Sequence[str]) -> bool:
    return not text.startswith("--") and all(f"-{char}" in flags for char in text[1:])


def _with_input_arguments(
    options: Sequence[Word], inner: tuple[Word, ...]
) -> tuple[Word, ...]:
    """xargs adds what it reads, or puts it where its placeholder stands."""
    placeholder = "{}"
    for index, option in enumerate(options):
        if option.text == "-I" and index + 1 < len(options):
            placeholder = options[index + 1].text
        elif option.text.startswith(("-I", "-i")) and len(option.text) > 2:
            placeholder = option.text[2:]
    filled = tuple(
        Word(word.text, word.static and placeholder not in word.text) for word in inner
    )
    return (*filled, Word("", static=False)) if filled else filled


def _unwrap_find(words: Sequence[Word], found: Unwrapped) -> None:
    starts = [i for i, word in enumerate(words, 1) if word.text in _EXEC_OPTIONS]
    if len(starts) > _MAX_EXECS:
        raise TooTangledError
    inner = (tuple(_until_end(words[start:])) for start in starts)
    found.commands.extend(filter(None, inner))


def _until_end(words: Sequence[Word]) -> Iterator[Word]:
    for word in words:
        if word.text in (";", "+"):
            return
        yield Word(word.text, word.static and "{" not in word.text)


def _unwrap_joined(words: Sequence[Word], found: Unwrapped) -> None:
    """`eval`, and programs that hand all their arguments to a shell."""
    if len(words) > 1:
        _add_script(words[1:], found)


def _unwrap_watch(words: Sequence[Word], found: Unwrapped) -> None:
    rest = [word for word in words[1:] if not word.text.startswith("-")]
    if rest and re.fullmatch(r"[\d.]+", rest[0].text):
        rest = rest[1:]
    found.doubts.append("It runs a command again and again.")
    _add_script(rest, found)


def _unwrap_c_option(words: Sequence[Word], found: Unwrapped) -> None:
    """`su -c`, `script -c` and the like."""
    for index, word in enumerate(words[:-1]):
        if word.text in ("-c", "--command"):
            _add_script(words[index + 1 : index + 2], found)
    found.doubts.append("It starts a shell.")


def _unwrap_trap(words: Sequence[Word], found: Unwrapped) -> None:
    _add_script(words[1:2], found)


def _unwrap_remote(words: Sequence[Word], found: Unwrapped) -> None:
    """`ssh host command`: the command matters, even if it runs elsewhere."""
    found.doubts.append("It may run commands on another machine.")
    rest = words[_skip_options(_SSH, words, found) :]
    if len(rest) > 1:
        _add_script(rest[1:], found)


def _unwrap_mystery(words: Sequence[Word], found: Unwrapped) -> None:
    found.doubts.append(f"{words[0].text} runs commands that it reads elsewhere.")


_SPECIAL: Final[Mapping[str, Callable[[Sequence[Word], Unwrapped], None]]] = {
    "find": _unwrap_find,
    "gfind": _unwrap_find,
    "fd": _unwrap_find,
    "fdfind": _unwrap_find,
    "eval": _unwrap_joined,
    "watch": _unwrap_watch,
    "su": _unwrap_c_option,
    "runuser": _unwrap_c_option,
    "script": _unwrap_c_option,
    "trap": _unwrap_trap,
    "ssh": _unwrap_remote,
    "parallel": _unwrap_mystery,
    "source": _unwrap_mystery,
    ".": _unwrap_mystery,
    "at": _unwrap_mystery,
    "batch": _unwrap_mystery,
    "mapfile": _unwrap_mystery,
    "readarray": _unwrap_mystery,
    "enable": _unwrap_mystery,
    "alias": _unwrap_mystery,
    "hash": _unwrap_mystery,
    "entr": _unwrap_mystery,
    "rlwrap": _unwrap_mystery,
    "expect": _unwrap_mystery,
}

# Options by which a program that mostly reads writes a file or starts a program.
_ESCAPES: Final[Mapping[str, frozenset[str]]] = {
    name: frozenset(options.split())
    for name, options in {
        "find": "-delete -fprint -fprintf -fprint0 -fls",
        "sort": "-o --output --compress-program",
        "tar": "--to-command --checkpoint-action -I --use-compress-program -F "
        "--info-script --new-volume-script --rsh-command --rmt-command",
        "rg": "--pre --hostname-bin",
        "git": "--output --ext-diff --textconv --open-files-in-pager -O --exec "
        "--upload-pack --receive-pack --extcmd",
        "man": "-P --pager -H --html",
        "tree": "-o --output",
        "curl": "-o -O --output --remote-name -K --config -D --dump-header -c "
        "--cookie-jar",
        "rsync": "-e --rsh --rsync-path",
        "scp": "-o -S -F",
        "zip": "-T -TT --unzip-command",
        "go": "-exec -toolexec -vettool",
        "less": "-o -O --log-file",
        "date": "-s --set",
        "sed": "-i --in-place -f --file -e --expression",
        "awk": "-f --file -i --include -e --source -E -l --load",
        "yq": "-i --inplace",
        "file": "-C --compile",
        "ip": "-b -batch netns",
        "vim": "-c -S --cmd",
        "uniq": "",
    }.items()
}
_SAME_AS: Final = {
    "gawk": "awk",
    "mawk": "awk",
    "nawk": "awk",
    "gsed": "sed",
    "gsort": "sort",
    "gtar": "tar",
    "bsdtar": "tar",
    "gfind": "find",
    "vi": "vim",
    "nvim": "vim",
}
# Words that change what every later argument of git means come before its subcommand.
_GIT_HARMLESS: Final = frozenset({"--no-pager", "--version", "--help"})
_GIT_MESSAGE: Final = frozenset({"-m", "--message"})
_SED_HARMLESS: Final = re.compile(
    r"(\d+|\$)?(,(\d+|\$))?[pdq]|s/[^/\n]*/[^/\n]*/[gIip\d]*"
)
_AWK_ACTIVE: Final = re.compile(r"system|getline|[|>@]")


def _find_escapes(name: str, words: Sequence[Word]) -> Iterator[str]:
    name = _SAME_AS.get(name, name)
    options = _ESCAPES.get(name)
    if options is None:
        return
    for previous, word in pairwise(words):
        if name == "git" and previous.text in _GIT_MESSAGE:
            continue  # a message is text, wherever it comes from
        if not word.static:
            yield f"{name} could be told to write or run something by a variable part."
        elif _is_escape(word.text, options):
            yield f"{word.text} makes {name} write or run something."
    yield from _find_program_escapes(name, [word.text for word in words])


def _is_escape(text: str, options: frozenset[str]) -> bool:
    """Whether a word is one of the options, abbreviated or joined with others."""
    head = text.partition("=")[0]
    if head.startswith("--"):
        return len(head) > 2 and any(option.startswith(head) for option in options)
    letters = {option[1] for option in options if len(option) == 2}
    cluster = re.match(r"-([A-Za-z]+)", text)
    return head in options or bool(cluster and letters.intersection(cluster[1]))


def _find_program_escapes(name: str, texts: Sequence[str]) -> Iterator[str]:
    arguments = [text for text in texts[1:] if not text.startswith("-")]
    first = texts[1] if len(texts) > 1 else ""
    if name == "git" and first.startswith("-") and first not in _GIT_HARMLESS:
        yield f"{first} changes how git behaves."
    if name == "sed" and arguments and not _SED_HARMLESS.fullmatch(arguments[0]):
        yield "This sed script could write files or run commands."
    if name == "awk" and any(_AWK_ACTIVE.search(text) for text in texts[1:]):
        yield "This awk program could write files or run commands."
    if name == "uniq" and len(arguments) > 1:
        yield "uniq writes to its second file."
    if name == "tar" and set("IF").intersection(first):
        yield "This tar option could run a program."
