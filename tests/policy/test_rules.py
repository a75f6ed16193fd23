from __future__ import annotations

from pathlib import Path

import pytest

from agents.policy.calls import ToolCall
from agents.policy.modes import Effect
from agents.policy.paths import Place
from agents.policy.rules import (
    Rule,
    RuleScope,
    find_allowing,
    find_tightening,
    suggest_rule,
    unsure_about,
    would_match,
)


@pytest.fixture
def here(tmp_path: Path) -> Place:
    (tmp_path / "work/src/deep").mkdir(parents=True)
    return Place(tmp_path / "work", tmp_path / "home")


def allow(notation: str, **kwargs) -> Rule:
    return Rule.parse(notation, Effect.ALLOW, **kwargs)


def bash(text: object) -> ToolCall:
    return ToolCall("Bash", {"command": text})


def write(path: str) -> ToolCall:
    return ToolCall("Write", {"file_path": path, "content": "x"})


@pytest.mark.parametrize(
    ("notation", "tool", "matcher"),
    [
        ("Bash", "Bash", ""),
        ("Bash(ls:*)", "Bash", "ls:*"),
        ("Bash(*)", "Bash", ""),
        ("Bash(echo (a))", "Bash", "echo (a)"),
        ("Bash(a\nb)", "Bash", "a\nb"),
        (" Read() ", "Read", ""),
        ("Write(*)", "Write", "*"),
        ("mcp__github", "mcp__github", ""),
    ],
)
def test_a_rule_is_read_from_its_notation(notation, tool, matcher):
    rule = Rule.parse(notation, Effect.DENY, RuleScope.SITE, "r1")

    assert rule == Rule(tool, Effect.DENY, RuleScope.SITE, matcher, "r1")


def test_a_rule_is_written_as_it_is_read():
    for notation in ("Bash", "Bash(ls:*)", "Write(*)", "Read(src/**)"):
        assert str(allow(notation)) == notation


@pytest.mark.parametrize("notation", ["", "(x)", "Bash(x", "two words"])
def test_what_is_no_rule_is_refused(notation):
    with pytest.raises(ValueError, match="Not a rule"):
        allow(notation)


@pytest.mark.parametrize(
    ("rule", "tool", "expected"),
    [
        ("Read", "Read", True),
        ("Read", "Write", False),
        ("*", "Write", True),
        ("mcp__*", "mcp__a__b", True),
        ("mcp__*", "Read", False),
        ("mcp__a", "mcp__a__b", True),
        ("mcp__a__*", "mcp__a__b", True),
        ("mcp__a__b", "mcp__a__b", True),
        ("mcp__a__b", "mcp__a__bc", False),
        ("mcp__a", "mcp__ab__c", False),
        ("fetch", "mcp__openswarm__fetch", True),
        ("fetch", "mcp__else__fetch", False),
    ],
)
def test_rules_name_tools_servers_or_everything(here, rule, tool, expected):
    call = ToolCall(tool, {})

    assert would_match(Rule(rule, Effect.ALLOW), call, here) is expected
    assert would_match(Rule(rule, Effect.DENY), call, here) is expected


@pytest.mark.parametrize(
    ("matcher", "text", "expected"),
    [
        ("ls:*", "ls", True),
        ("ls:*", "ls -la", True),
        ("ls:*", "lsof", False),
        ("ls:*", "/bin/ls", False),
        ("git status:*", "git status -s", True),
        ("git status:*", "git statusx", False),
        ("git status:*", "git", False),
        ("git 'status':*", "git status", True),
        ("npm test", "npm test", True),
        ("npm test", " npm test\n", True),
        ("npm test", "npm test -- -x", False),
        ("npm test", "npm test; npm test", True),
        ("ls *", "ls *", True),
        ("ls *", "ls x y", False),
        ("ls > x", "ls > x", True),
        ("ls > x", "ls > y", False),
        ("a && b | c", "a && b | c", True),
        (":*", "ls", False),
        ("find . -delete", "find . -delete", True),
        ("ls 'x", "ls 'x", False),
    ],
)
def test_command_matchers_are_a_prefix_or_exact(here, matcher, text, expected):
    rule = Rule("Bash", Effect.ALLOW, matcher=matcher)

    assert would_match(rule, bash(text), here) is expected


def test_several_rules_allow_a_compound_command_together(here):
    rules = [allow("Bash(ls:*)"), allow("Bash(npm test)")]

    assert find_allowing(rules, bash("npm test && ls"), here) == rules[1]
    assert find_allowing(rules[:1], bash("npm test && ls"), here) is None


def test_a_rule_for_the_whole_of_bash_allows_what_can_be_read(here):
    rules = [allow("Bash")]

    assert find_allowing(rules, bash("$x > y"), here) == rules[0]
    assert find_allowing(rules, bash("ls 'x"), here) is None
    assert find_allowing(rules, bash(None), here) is None
    assert find_allowing(rules, bash(""), here) == rules[0]
    assert find_allowing([allow("Bash(ls:*)")], bash(""), here) is None


@pytest.mark.parametrize(
    ("matcher", "text", "expected"),
    [
        ("rm:*", "/usr/bin/rm x", True),
        ("/usr/bin/rm:*", "rm x", False),
        ("git push:*", "git push $x", True),
        ("rm -rf x", "rm -rf x", True),
        ("rm -rf x", "ls; rm -rf x", True),
        ("rm -rf x", "rm -rf y", False),
        ("timeout:*", "timeout 5 ls", True),
    ],
)
def test_tightening_rules_look_at_every_part(here, matcher, text, expected):
    for effect in (Effect.ASK, Effect.DENY):
        rule = Rule("Bash", effect, matcher=matcher)

        assert would_match(rule, bash(text), here) is expected
        found = find_tightening([rule], bash(text), here, effect)
        assert found == (rule if expected else None)


def test_a_rule_tightens_only_with_its_own_effect(here):
    rule = Rule("Bash", Effect.ASK)

    assert find_tightening([rule], bash("ls"), here, Effect.DENY) is None
    assert find_allowing([rule], bash("ls"), here) is None


@pytest.mark.parametrize("text", ["$x y", "$(echo rm) y", "ls 'x", 7])
def test_a_rule_about_commands_is_unsure_about_unclear_ones(text):
    rule = Rule("Bash", Effect.DENY, matcher="rm:*")

    assert unsure_about([allow("Bash(ls:*)"), rule], bash(text)) == rule
    assert unsure_about([allow("Bash(ls:*)")], bash(text)) is None
    assert unsure_about([Rule("Read", Effect.DENY, matcher="x")], bash(text)) is None


def test_nothing_is_unsure_about_plain_commands_and_other_tools():
    rule = Rule("Bash", Effect.DENY, matcher="rm:*")

    assert unsure_about([rule], bash("ls $x")) is None
    assert unsure_about([rule], write("x")) is None


@pytest.mark.parametrize(
    ("matcher", "path", "expected"),
    [
        ("src/**", "src/a", True),
        ("src/**", "src/deep/a", True),
        ("src/**", "src", True),
        ("src/**", "srcx/a", False),
        ("src/*", "src/deep/a", False),
        ("src/*", "src/a", True),
        ("*", "a", True),
        ("*", "src/a", False),
        ("**", "src/deep/a", True),
        ("**/*.py", "a.py", True),
        ("**/*.py", "src/deep/a.py", True),
        ("**/*.py", "a.pyc", False),
        ("a?.py", "ab.py", True),
        ("a.py", "aXpy", False),
        ("src/../a", "a", True),
        ("src/**", "src/../a", False),
        ("[id]/**", "[id]/x", True),
        ("[id]/**", "i/x", False),
        ("~/x", "~/x", True),
        ("~nobody/**", "~nobody/x", False),
        ("~nobody/**", "a", False),
        ("../**", "../other/x", True),
        ("src/**", "a\0b", False),
    ],
)
def test_path_matchers_are_globs_from_the_working_directory(
    here, matcher, path, expected
):
    assert would_match(allow(f"Write({matcher})"), write(path), here) is expected
    deny = Rule.parse(f"Write({matcher})", Effect.DENY)
    assert would_match(deny, write(path), here) is expected


def test_an_absolute_glob_matches_where_a_path_leads(here):
    assert would_match(allow(f"Write({here.cwd}/src/**)"), write("src/a"), here)
    assert not would_match(allow("Write(/etc/**)"), write("src/a"), here)


def test_a_symlink_is_allowed_by_its_target_and_denied_by_either_name(here):
    (here.cwd / "secret").mkdir()
    (here.cwd / "src/link").symlink_to(here.cwd / "secret")

    assert not would_match(allow("Write(src/**)"), write("src/link/x"), here)
    assert would_match(allow("Write(secret/**)"), write("src/link/x"), here)
    for notation in ("Write(src/link/**)", "Write(secret/**)"):
        rule = Rule.parse(notation, Effect.DENY)
        assert would_match(rule, write("src/link/x"), here)


def test_a_path_rule_does_not_speak_about_a_call_without_a_path(here):
    call = ToolCall("Write", {})

    assert not would_match(allow("Write(**)"), call, here)
    assert would_match(allow("Write"), call, here)


@pytest.mark.parametrize(
    ("domain", "url", "expected"),
    [
        ("example.com", "https://example.com/x", True),
        ("example.com", "https://API.Example.com:8443/x", True),
        ("example.com", "https://example.com./", True),
        ("example.com", "https://notexample.com", False),
        ("example.com", "https://example.com.evil.org", False),
        ("example.com", "https://example.com@evil.org", False),
        ("example.com", "https://[bad", False),
        ("example.com", None, False),
        ("", "https://example.com", False),
    ],
)
def test_fetch_rules_name_domains(here, domain, url, expected):
    call = ToolCall("mcp__openswarm__fetch", {"url": url})

    assert would_match(allow(f"fetch(domain:{domain})"), call, here) is expected


def test_agent_rules_name_the_kind_of_agent(here):
    call = ToolCall("Agent", {"subagent_type": "Explore"})

    assert would_match(allow("Agent(Explore)"), call, here)
    assert not would_match(allow("Agent(Plan)"), call, here)


def test_a_senseless_matcher_tightens_and_never_allows(here):
    call = ToolCall("mcp__github__search", {"q": "x"})

    assert not would_match(allow("mcp__github__search(q=x)"), call, here)
    assert would_match(Rule.parse("mcp__github(q=x)", Effect.DENY), call, here)
    fetch = ToolCall("mcp__openswarm__fetch", {"url": "https://x.example"})
    assert not would_match(allow("fetch(x.example)"), fetch, here)


@pytest.mark.parametrize(
    ("text", "matcher"),
    [
        ("ls -la src", "ls:*"),
        ("timeout 5 ls", "ls:*"),
        ("git status -s", "git status:*"),
        ("npm test", "npm test:*"),
        ("git push --force", "git push --force"),
        ("npm run build", "npm run build"),
        ("git -c a=b status", "git -c a=b status"),
        ("git", "git"),
        ("rm -rf build", "rm -rf build"),
        ("python x.py", "python x.py"),
        ("ls | wc -l", "ls | wc -l"),
        (" ls > x ", "ls > x"),
        ("find . -delete", "find . -delete"),
        ("bash -c 'ls'", "bash -c 'ls'"),
    ],
)
def test_a_card_suggests_a_rule_no_wider_than_it_looks(here, text, matcher):
    rule = suggest_rule(bash(text), here, RuleScope.USER)

    assert rule == Rule("Bash", Effect.ALLOW, RuleScope.USER, matcher)
    assert would_match(rule, bash(text), here)


@pytest.mark.parametrize(
    "text", ["ls 'x", "", None, "a:*", "echo " + "x" * 1000 + ";ls"]
)
def test_some_commands_have_no_rule(here, text):
    assert suggest_rule(bash(text), here) is None


@pytest.mark.parametrize(
    ("path", "matcher"),
    [
        ("a.txt", "*"),
        ("src/a", "src/**"),
        ("src/deep/a", "src/deep/**"),
        ("src", "src/**"),
    ],
)
def test_a_card_suggests_the_folder_of_a_file(here, path, matcher):
    assert suggest_rule(write(path), here) == Rule(
        "Write", Effect.ALLOW, matcher=matcher
    )


def test_a_search_of_everything_suggests_everything_below(here):
    assert suggest_rule(ToolCall("Grep", {"pattern": "x"}), here) == Rule(
        "Grep", Effect.ALLOW, matcher="**"
    )


def test_a_file_elsewhere_suggests_its_absolute_folder(here, tmp_path):
    rule = suggest_rule(write(f"{tmp_path}/extra/x"), here)

    assert rule == Rule("Write", Effect.ALLOW, matcher=f"{tmp_path}/extra/**")


def test_odd_paths_have_no_rule(here):
    assert suggest_rule(write("a*b/x"), here) is None
    assert suggest_rule(ToolCall("Write", {}), here) is None


@pytest.mark.parametrize(
    ("tool", "tool_input", "expected"),
    [
        ("mcp__a__b", {"x": 1}, "mcp__a__b"),
        ("TodoWrite", {}, "TodoWrite"),
        ("Agent", {"subagent_type": "Explore"}, "Agent(Explore)"),
        ("Agent", {}, "Agent"),
        (
            "mcp__openswarm__fetch",
            {"url": "https://docs.example/x"},
            "mcp__openswarm__fetch(domain:docs.example)",
        ),
        ("mcp__openswarm__fetch", {}, None),
        ("AskUserQuestion", {}, None),
        ("ExitPlanMode", {}, None),
    ],
)
def test_other_tools_suggest_what_their_rules_can_say(here, tool, tool_input, expected):
    rule = suggest_rule(ToolCall(tool, tool_input), here)

    assert (str(rule) if rule else None) == expected


def test_a_rule_alone_speaks_about_these_calls(here):
    past = [bash("ls"), bash("ls; rm x"), bash("ls -a"), write("ls")]

    def matched(rule):
        return [call for call in past if would_match(rule, call, here)]

    assert matched(allow("Bash(ls:*)")) == [past[0], past[2]]
    assert matched(Rule.parse("Bash(rm:*)", Effect.DENY)) == [past[1]]
