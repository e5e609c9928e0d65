"""The object store of logos: a local folder and S3, each call bounded and its failures told alike."""

from pathlib import Path

import pytest
from obstore.store import S3Store

from payagg.adapters.logos import ObjectLogos, _open_store
from payagg.application.ports.outside import ObjectStore, Unavailable
from tests.support.gateway_world import files_under
from tests.support.ports import free_port

PATH = "gw_1/0123.png"


async def assert_keeps_files(logos: ObjectStore) -> None:
    assert await logos.get(PATH) is None
    await logos.put(PATH, b"first")
    await logos.put(PATH, b"\x89second\x00")
    assert await logos.get(PATH) == b"\x89second\x00"
    await logos.delete(PATH)
    assert await logos.get(PATH) is None
    await logos.delete(PATH)


@pytest.mark.parametrize("form", ["{}", "file://{}"])
async def test_a_folder_is_made_when_it_is_first_needed(tmp_path: Path, form: str) -> None:
    folder = tmp_path / "not" / "there yet"
    logos = ObjectLogos(form.format(folder))
    assert files_under(tmp_path) == []
    await assert_keeps_files(logos)
    await logos.put(PATH, b"kept")
    assert files_under(tmp_path) == [folder / PATH]


async def test_a_store_that_fails_is_unavailable(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for place in (str(tmp_path / "file" / "logos"), f"http://127.0.0.1:{free_port()}/"):
        logos = ObjectLogos(place)
        for call in (logos.put(PATH, b"x"), logos.get(PATH), logos.delete(PATH)):
            with pytest.raises(Unavailable):
                await call


async def test_a_url_names_a_store_and_the_prefix_of_its_files() -> None:
    await assert_keeps_files(ObjectLogos("memory:///"))
    store = _open_store("s3://bucket/some/prefix")
    assert isinstance(store, S3Store)
    assert (store.config["bucket"], store.prefix) == ("bucket", "some/prefix")
