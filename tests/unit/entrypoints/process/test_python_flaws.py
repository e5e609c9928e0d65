"""Which Pythons have a flaw that matters."""

from payagg.entrypoints.process.python_flaws import python_flaw


def test_a_python_with_a_known_flaw_is_told_with_what_mends_it() -> None:
    mended = {11: "3.11.10", 12: "3.12.6"}
    for version in ((3, 11, 7), (3, 11, 9), (3, 12, 0), (3, 12, 5)):
        flaw = python_flaw(version)
        assert flaw is not None
        assert flaw.startswith(f"Python {'.'.join(map(str, version))} has a known flaw, CVE-2024-7592")
        assert mended[version[1]] in flaw
    assert [python_flaw(sound) for sound in ((3, 11, 10), (3, 12, 6), (3, 13, 0), (3, 14, 0))] == [None] * 4
