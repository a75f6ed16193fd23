"""Forms by which a command could slip past a narrow allow rule; none may."""

from __future__ import annotations

from pathlib import Path

import pytest

from agents.policy.calls import ToolCall
from agents.policy.modes import Effect
from agents.policy.paths import Place
from agents.policy.rules import Rule, find_allowing, find_tightening

HERE = Place(Path("/srv/session"), Path("/srv/home"))
NARROW = [
    Rule.parse(f"Bash({matcher})", Effect.ALLOW)
    for matcher in (
        *("ls:*", "git status:*", "cat:*", "echo:*", "find:*", "xargs:*", "sed:*"),
        *("timeout:*", "sudo:*", "env:*", "bash:*", "sh:*", "eval:*", "sort:*"),
        *("git log:*", "git diff:*", "tar:*", "awk:*", "watch:*", "command:*"),
        *("nohup:*", "nice:*", "exec:*", "time:*", "busybox:*", "su:*", "tee:*"),
    )
]

# Each does something that no rule above names, or can't be told to do only that.
BYPASSES = [
    # chains
    "ls; rm x",
    "ls && rm x",
    "ls || rm x",
    "ls & rm x",
    "ls\nrm x",
    "ls | rm x",
    "ls |& rm x",
    "! rm x",
    "ls;rm x # ls",
    "git status;rm x",
    "cd /tmp && ls",
    "cd x; git status",
    # groups and control structures
    "(rm x)",
    "{ rm x; }",
    "ls && (cat y; rm x)",
    "if ls; then rm x; fi",
    "while ls; do rm x; done",
    "until rm x; do ls; done",
    "for f in a b; do rm $f; done",
    "for PATH in ./evil; do ls; done",
    "case a in a) rm x;; esac",
    "select x in a; do ls; done",
    "ls() { rm x; }; ls",
    "function ls { rm x; }",
    "[[ $x -eq 1 ]] && ls",
    "((x[$(rm y)]++))",
    "coproc rm x",
    # substitutions
    "ls $(rm x)",
    "ls `rm x`",
    'ls "$(rm x)"',
    'ls "a`rm x`b"',
    "ls <(rm x)",
    "ls >(rm x)",
    'ls "$(cat "$(rm x)")"',
    "echo ${x:-$(rm y)}",
    "echo ${x@P}",
    "echo ${!x}",
    "echo $((a[$(rm x)]))",
    "ls $[1+1]",
    # what runs is only known later
    "$x",
    "$(echo rm) x",
    "l$x -la",
    "ls$IFS-la",
    "/bin/r? x",
    "/???/rm x",
    "{rm,-rf,x}",
    "$'\\x72m' x",
    "r\\\nm x",
    "r''m x",
    # environments
    "LD_PRELOAD=./evil.so ls",
    "PATH=. ls",
    "GIT_PAGER=./evil git status",
    "LANG=$(rm x) ls",
    "PATH=.; ls",
    "x=(a b); ls",
    "export PATH=.; ls",
    "alias ls=rm; ls",
    "env PATH=. ls",
    "env -i rm x",
    "env -S 'rm x'",
    "unset PATH; ls",
    # wrappers
    "xargs rm",
    "echo x | xargs rm",
    "xargs -I{} sh -c {}",
    "xargs -I% % x",
    "xargs sh -c 'rm x'",
    "xargs -I % sh -c %",
    "xargs -I% ls %; rm x",
    "env --split-string='rm x'",
    "bash $x -c ls",
    "bash $x",
    "bash -x $script",
    "timeout 5 rm x",
    "timeout -s KILL 5 rm x",
    "timeout --wrong ls rm x",
    "timeout $T ls",
    "sudo rm x",
    "sudo -u root rm x",
    "sudo FOO=1 ls",
    "nice -n 5 rm x",
    "nohup rm x",
    "time rm x",
    "time (rm x)",
    "time { rm x; }",
    "time ! rm x",
    "time for i in a; do rm x; done",
    "command rm x",
    "exec rm x",
    "busybox rm x",
    "bash -c 'rm x'",
    "bash -lc 'ls; rm x'",
    'sh -c "rm $x"',
    "bash -c 'bash -c \"rm x\"'",
    "eval rm x",
    "eval 'ls; rm x'",
    "eval $x",
    "su -c 'rm x'",
    "watch rm x",
    "watch -n 1 ls",
    "ssh host rm x",
    "source ./x",
    ". ./x",
    "trap 'rm x' EXIT",
    "find . -exec rm {} ;",
    r"find . -exec rm {} \;",
    "find . -execdir rm {} +",
    "find . -delete",
    "find . -fprint x",
    "find . $x",
    # shells that read what they run
    "echo 'rm x' | bash",
    "bash < x",
    "bash <<< 'rm x'",
    "bash <<'END'\nrm x\nEND",
    "cat <<END | sh\nrm x\nEND",
    "cat <<END\n$(rm x)\nEND",
    "cat <<END\n`rm x`\nEND",
    "cat <<A; rm x\ny\nA",
    "cat <<A <<B\n1\nA\n$(rm x)\nB",
    # redirections
    "ls > x",
    "ls >> x",
    "ls >| x",
    "ls &> x",
    "ls >& x",
    "ls 2> x",
    "ls 3<> x",
    "> x ls",
    "> x",
    "cat < /dev/tcp/10.0.0.1/80",
    "echo a > $x",
    "{ ls; } > x",
    "(ls) > x y",
    "cat <<END x > y\na\nEND",
    "<<< x",
    "<<END\nx\nEND",
    # options that write or run
    "git -c core.pager=./evil status",
    "git --exec-path=. status",
    "git -C /elsewhere status",
    "git log --output=x",
    "git diff --ext-diff",
    "git log --outp=x",
    "sort -o x y",
    "sort --compress-program=./evil x",
    "sort -ro x y",
    "tar -xf a --to-command=./evil",
    "tar xIf ./evil a",
    "tar -cf a b --checkpoint-action=exec=./evil",
    "sed -i s/a/b/ x",
    "sed -n '1e rm x' y",
    "sed 'w x' y",
    "awk 'BEGIN{system(\"rm x\")}'",
    "awk '{print > \"x\"}' y",
    # look-alikes and invisible characters
    "lѕ -la",  # Cyrillic dze
    "ls\u00a0-la",
    "ls\u200b",
    "ls \u202erm",
    "ls ；rm x",  # full-width semicolon
    "ls\r; rm x",
    "git ѕtatus",
    "ls \x1b[8mrm",
    "ls\x00rm",
    # what can't be read
    "ls 'unterminated",
    "ls $(rm x",
    "ls !(a)",
    "ls \\",
    "ls $'a'",
    "ls ) rm",
    "if ls",
    'ls $"a"; rm x',
]


def command(text: str) -> ToolCall:
    return ToolCall("Bash", {"command": text})


@pytest.mark.parametrize("text", BYPASSES)
def test_no_narrow_rule_allows_what_it_does_not_name(text):
    assert find_allowing(NARROW, command(text), HERE) is None


def test_the_table_is_as_long_as_promised():
    assert len(set(BYPASSES)) == len(BYPASSES) >= 60


@pytest.mark.parametrize(
    "text",
    [
        "ls",
        "ls -la src",
        "'ls' -la",
        'l"s" $HOME',
        "ls *.py",
        "ls ~/x",
        "ls {a,b}",
        "ls \\\n  -la",
        "LANG=C ls",
        "git status --short",
        "git status && ls",
        "ls; git status\nls",
        "ls | cat",
        "(ls; cat x)",
        "{ ls; }",
        "! ls",
        "if ls; then cat x; else cat y; fi",
        "for f in a b; do cat $f; done",
        "ls # rm x",
        "ls 2>/dev/null",
        "ls 2>&1 | cat",
        "ls 2>&-",
        "ls > /dev/null",
        "cat < x",
        "cat <<< 'rm x'",
        "cat <<'END'\nrm x\n$(rm x)\nEND",
        "cat <<END\nrm x $y\nEND",
        "echo 'ls; rm x' \"&& rm\" \\; rm",
        'ls "$(cat x)"',
        "timeout 5 ls",
        "timeout -k 3 -s KILL 5s git status",
        "nice -n 5 ls",
        "time ls",
        "command ls",
        "command -v rm",
        "sudo -u root ls",
        "nohup ls",
        "env ls",
        "env -u X ls",
        "xargs -0 -n1 ls",
        "bash -c 'ls; cat x'",
        "bash --norc -c ls",
        "eval ls -la",
        "find . -name x",
        "find . -exec",
        "bash script.sh $x",
        r"find . -exec cat {} \;",
        "sort -k1,1 x",
        "git log --oneline -n 5",
        "tar -tzf a.tar",
        "sed -n 5p x",
        "sed -n 3,9p x",
        "sed s/a/b/g x",
        "awk '{print $1}' x",
        "echo grüße",
        "ls -- -x",
    ],
)
def test_every_part_named_by_some_rule_is_allowed(text):
    assert find_allowing(NARROW, command(text), HERE) is not None


@pytest.mark.parametrize(
    "text",
    [
        "rm x",
        "/bin/rm x",
        "r\\m x",
        "r''m x",
        "$'rm' x",
        "r\\\nm x",
        "ls; rm x",
        "ls $(rm x)",
        "ls `rm x`",
        "cat <<END\n`rm x`\nEND",
        "sudo rm x",
        "sudo -u root timeout 5 rm x",
        "env A=1 rm x",
        "env -S 'rm x'",
        "env --split-string='rm x' y",
        "xargs rm",
        "find . -exec rm {} +",
        "fd -x rm",
        "bash -c 'rm x'",
        'bash -c "$y; rm x"',
        "echo rm x | sh",
        "cat <<END | sh\nrm x\nEND",
        "sh <<< 'rm x'",
        "eval rm x",
        "su root -c 'rm x'",
        "watch -n 1 rm x",
        "ssh -p 22 host rm x",
        "trap 'rm x' EXIT",
        "f() { rm x; }; f",
        "case a in a) rm x;; esac",
        "time (rm x)",
        "time { rm x; }",
        "time ! rm x",
        "time if ls; then rm x; fi",
        "coproc { rm x; }",
        "X=$(rm x)",
        "[[ -n $(rm x) ]]",
        "> y rm x",
        "ls > y | rm x",
        "rm > /dev/null x",
        "a; rm x; ls )",
    ],
)
def test_a_deny_rule_finds_the_command_wherever_it_hides(text):
    rules = [Rule.parse("Bash(rm:*)", Effect.DENY)]
    assert find_tightening(rules, command(text), HERE, Effect.DENY) == rules[0]


@pytest.mark.parametrize(
    "text", ["echo rm x", "git rm x", "ls 'unterminated; rm x", "cat <<'E'\nrm x\nE"]
)
def test_a_deny_rule_leaves_mere_words_alone(text):
    rules = [Rule.parse("Bash(rm:*)", Effect.DENY)]

    assert find_tightening(rules, command(text), HERE, Effect.DENY) is None
