"""scripts/version: the commit is in the version, unless the commit is the tagged one."""

import shutil
import subprocess

import pytest

from harness.settings import ROOT

pytestmark = pytest.mark.skipif(not shutil.which("git"), reason="git is not installed")


def git(tree, *words):
    who = ["-c", "user.name=test", "-c", "user.email=test@localhost"]
    return subprocess.run(["git", "-C", tree, *who, *words], check=True, capture_output=True,
                          text=True, timeout=30).stdout.strip()


def version_of(tree):
    return subprocess.run([tree / "scripts" / "version"], check=True, capture_output=True,
                          text=True, timeout=30, cwd="/").stdout.strip()


def make_tree(folder):
    (folder / "scripts").mkdir(parents=True)
    shutil.copy(ROOT / "scripts" / "version", folder / "scripts")
    (folder / "VERSION").write_text("1.2.3\n")


def commit(tree):
    git(tree, "add", ".")
    git(tree, "commit", "-qm", "one")
    return git(tree, "rev-parse", "--short=12", "HEAD")


def test_no_checkout_has_the_plain_version(tmp_path):
    make_tree(tmp_path)
    assert version_of(tmp_path) == "1.2.3"


def test_another_checkout_around_it_does_not_count(tmp_path):
    make_tree(tmp_path / "inner")
    git(tmp_path, "init", "-q")
    commit(tmp_path)
    assert version_of(tmp_path / "inner") == "1.2.3"


def test_a_checkout_has_its_commit_until_that_is_tagged(tmp_path):
    make_tree(tmp_path)
    git(tmp_path, "init", "-q")
    head = commit(tmp_path)
    assert version_of(tmp_path) == f"1.2.3+g{head}"
    git(tmp_path, "tag", "v1.2.2")
    assert version_of(tmp_path) == f"1.2.3+g{head}"
    git(tmp_path, "tag", "-a", "v1.2.3", "-m", "release")
    assert version_of(tmp_path) == "1.2.3"
    (tmp_path / "VERSION").write_text("1.2.3\n\n")
    assert version_of(tmp_path) == f"1.2.3+g{head}.dirty"
