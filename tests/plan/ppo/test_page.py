"""What docs/ppo.md says is so."""

import re

import pytest

import missmdp as mm


@pytest.fixture
def page(request):
    return request.config.rootpath / "docs" / "ppo.md"


def test_the_code_on_the_page_runs(page, tmp_path, monkeypatch, capsys):
    pytest.importorskip("torch")
    pytest.importorskip("stable_baselines3")
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)
    assert len(blocks) == 5
    monkeypatch.chdir(tmp_path)
    names = {}
    for block in blocks:
        exec(compile(block.replace("steps=1_000_000", "steps=5_000"), "docs/ppo.md", "exec"), names)
    assert "trained for 8,192 steps" in capsys.readouterr().out
    assert (tmp_path / "icu.mmpolicy").exists()


def test_links_lead_to_files(page):
    for target in re.findall(r"\]\(([^)]+)\)", page.read_text()):
        assert "://" in target or (page.parent / target.split("#")[0]).exists(), target


def test_the_defaults_on_the_page_are_those_of_the_code(page):
    settings = mm.PPOSettings()
    section = page.read_text().split("## Settings")[1].split("## ")[0]
    rows = re.findall(r"^\| (`\w+`(?:, `\w+`)*) \| ([^|]+) \|", section, re.MULTILINE)
    told = {}
    for names, values in rows:
        listed = re.split(r", (?=[\d`])", values.strip())
        told |= dict(zip(re.findall(r"\w+", names), listed, strict=True))
    assert set(told) == set(settings.__dataclass_fields__)
    for name, text in told.items():
        value = getattr(settings, name)
        assert text.strip("`").replace(",", "") == f"{value}", name
