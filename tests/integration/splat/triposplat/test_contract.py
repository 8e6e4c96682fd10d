"""The adapter against the stand-in: what it calls, what it gives, and how it breaks."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Any

import gsply
import numpy as np
import pytest
from PIL import Image

from tests.integration.splat.triposplat.conftest import broken, made

if TYPE_CHECKING:
    from collections.abc import Callable

    from tempa.testing.fake_triposplat import FakeTripoSplat

pytestmark = pytest.mark.asyncio(loop_scope="package")

Benches = Any
GIB = 1 << 30


async def test_a_picture_becomes_gaussians(bench: Benches, fake: FakeTripoSplat) -> None:
    job = bench(fake)
    done = made(await job.run(formats=("ply", "spz")))
    assert [(one.name, one.role) for one in done.files] == [
        ("model.ply", "gaussian_ply"),
        ("model.spz", "spz"),
        ("preview.png", "rendered_preview"),
    ]
    assert done.measurements["gaussians"] == 2048
    assert done.measurements["method"] == "triposplat"
    assert done.measurements["model_files"] == fake.options["pins"]


async def test_the_object_stands_upright(bench: Benches, fake: FakeTripoSplat) -> None:
    """The stand-in lights what is up in the model's frame, z; gsply, which is not ours, reads the file."""
    job = bench(fake)
    made(await job.run())
    read = gsply.plyread(job.latest / "model.ply")
    up, brightness = -read.means[:, 1], read.sh0.mean(axis=1)  # a .ply has y down
    assert np.corrcoef(up, brightness)[0, 1] > 0.99


async def test_the_pictures_colour_arrives(bench: Benches, fake: FakeTripoSplat) -> None:
    job = bench(fake)
    made(await job.run())
    colors = 0.5 + 0.28209479177387814 * gsply.plyread(job.latest / "model.ply").sh0
    assert np.allclose(colors.mean(axis=0), np.array((230, 130, 40)) / 255, atol=0.02)


async def test_the_same_request_gives_the_same_bytes(bench: Benches, fake: FakeTripoSplat) -> None:
    job = bench(fake, live_preview=False)  # the pictures would seed the global source, too
    made(await job.run())
    first = job.sha256("model.ply")
    made(await job.run())
    assert job.sha256("model.ply") == first


async def test_another_seed_gives_other_bytes(bench: Benches, fake: FakeTripoSplat) -> None:
    job = bench(fake)
    made(await job.run(seed=1))
    first = job.sha256("model.ply")
    made(await job.run(seed=2))
    assert job.sha256("model.ply") != first


async def test_several_densities_come_of_one_denoising(bench: Benches, fake: FakeTripoSplat) -> None:
    job = bench(fake)
    done = made(await job.run(num_gaussians=[1024, 4096]))
    assert {one.name: one.role for one in done.files} == {
        "model.ply": "gaussian_ply",
        "model-1024.ply": "gaussian_ply_1024",
        "preview.png": "rendered_preview",
    }
    assert [one["gaussians"] for one in done.measurements["densities"]] == [4096, 1024]
    assert len([call for call in fake.calls() if call["call"] == "step"]) == 4


async def test_a_density_is_what_it_would_be_alone(bench: Benches, fake: FakeTripoSplat) -> None:
    job = bench(fake)
    made(await job.run(num_gaussians=[1024, 4096]))
    beside = job.sha256("model-1024.ply")
    made(await job.run(num_gaussians=1024))
    assert job.sha256("model.ply") == beside


async def test_networks_are_let_go_stage_by_stage(bench: Benches, card: FakeTripoSplat) -> None:
    made(await bench(card, keep="none", live_preview=False).run())
    alive = {call["call"]: call["alive"] for call in card.calls()}
    assert alive["encode"] == ["dinov3", "vae"]
    assert alive["step"] == ["flow"]
    assert alive["decode"] == ["decoder"]


async def test_networks_that_stay_are_loaded_once(bench: Benches, card: FakeTripoSplat) -> None:
    job = bench(card, keep="all")
    made(await job.run())
    made(await job.run())
    loads = [call["call"] for call in card.calls() if call["call"].startswith("load")]
    assert sorted(loads) == ["load decoder", "load dinov3", "load flow", "load vae"]


async def test_a_large_card_keeps_them_by_itself(bench: Benches, card: FakeTripoSplat) -> None:
    job = bench(card)
    made(await job.run())
    assert [call["call"] for call in card.calls()][:4] != ["load dinov3", "load vae", "encode", "load flow"]


async def test_a_live_picture_is_there_while_it_samples(bench: Benches, fake: FakeTripoSplat) -> None:
    job = bench(fake)
    pipes = [job.folder / f"pipe{step}" for step in (0, 1)]
    for pipe in pipes:
        os.mkfifo(pipe)
    fake.provoke(pipe=str(job.folder / "pipe"))
    running = asyncio.create_task(job.run(steps=2))
    await asyncio.to_thread(pipes[0].write_bytes, b"")  # the first step may go on
    second = await asyncio.to_thread(os.open, pipes[1], os.O_WRONLY)  # the second has begun, and waits
    live = job.latest / "live-preview.png"
    with Image.open(live) as picture:
        assert np.ptp(np.asarray(picture), axis=(0, 1)).min() > 30  # there is something to see
    os.close(second)
    made(await running)
    assert not live.exists()


async def test_live_pictures_change_nothing(bench: Benches, fake: FakeTripoSplat) -> None:
    with_them, without = bench(fake), bench(fake, live_preview=False)
    made(await with_them.run())
    first = with_them.sha256("model.ply")
    made(await without.run())
    assert without.sha256("model.ply") == first


async def test_a_cancel_ends_it_in_the_middle_of_a_step(bench: Benches, fake: FakeTripoSplat) -> None:
    job = bench(fake)
    os.mkfifo(job.folder / "pipe0")
    fake.provoke(pipe=str(job.folder / "pipe"))
    running = asyncio.create_task(job.run())
    await job.watcher.reached("sampling")
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(running, 5.0)
    fake.provoke()
    made(await job.run())


async def test_the_checkouts_matting_is_asked_where_nothing_plainer_does(
    bench: Benches, fake: FakeTripoSplat
) -> None:
    job = bench(fake)
    assert made(await job.run(alpha=False)).measurements["mask"] == "model"
    assert made(await job.run(alpha=True)).measurements["mask"] == "alpha"
    assert [call["call"] for call in fake.calls()].count("matte") == 1


async def test_without_the_matting_network_that_is_said(bench: Benches, fresh: FakeTripoSplat) -> None:
    (fresh.folder / "checkout/ckpts/background_removal/birefnet.safetensors").unlink()
    job = bench(fresh)
    assert broken(await job.run(alpha=False)).code == "MASK_PROVIDER_UNAVAILABLE"
    made(await job.run(alpha=True))


async def test_memory_that_the_request_alone_lacks_is_no_reason_to_try_again(
    bench: Benches, card: FakeTripoSplat
) -> None:
    card.provoke(total_bytes=8 * GIB, gaussian_bytes=64 << 10)
    job = bench(card, keep="none", live_preview=False)
    error = broken(await job.run(num_gaussians=131_072))
    assert (error.code, error.retryable) == ("CUDA_OUT_OF_MEMORY", False)
    assert error.detail["stage"] == "decoding"
    assert error.detail["suggest"] == {"num_gaussians": 65_536}
    assert error.detail["total_bytes"] == 8 * GIB
    assert error.detail["peak_bytes"] >= 1_663_000_000  # dinov3 and vae in halves: 874 million parameters


async def test_memory_that_others_hold_is_worth_another_try(bench: Benches, card: FakeTripoSplat) -> None:
    job = bench(card, keep="none", live_preview=False)
    card.provoke(total_bytes=8 * GIB, other_bytes=7 * GIB)
    error = broken(await job.run())
    assert (error.code, error.retryable) == ("CUDA_OUT_OF_MEMORY", True)
    assert error.detail["stage"] == "encoding"
    assert error.detail["other_bytes"] == 7 * GIB
    card.provoke(total_bytes=8 * GIB)
    made(await job.run())


async def test_a_process_that_lacked_memory_is_another_the_next_time(
    bench: Benches, card: FakeTripoSplat
) -> None:
    job = bench(card, keep="all", live_preview=False)
    card.provoke(total_bytes=16 * GIB, gaussian_bytes=16 << 20)
    assert broken(await job.run()).code == "CUDA_OUT_OF_MEMORY"
    card.provoke(total_bytes=16 * GIB)
    made(await job.run())
    assert [call["call"] for call in card.calls()].count("load flow") == 2


async def test_a_live_picture_is_not_worth_the_job(bench: Benches, card: FakeTripoSplat) -> None:
    """Of 16,384 Gaussians, it takes more than the 2,048 that were asked for."""
    card.provoke(total_bytes=8 * GIB, gaussian_bytes=1 << 20)
    made(await bench(card, keep="none").run())


async def test_the_hosts_memory_is_another_failure(bench: Benches, fake: FakeTripoSplat) -> None:
    fake.provoke(host_memory="decode")
    error = broken(await bench(fake, live_preview=False).run())
    assert error.code == "OUT_OF_MEMORY"
    assert error.detail["stage"] == "decoding"


async def test_a_device_that_went_away_is_noticed_before_the_work(
    bench: Benches, card: FakeTripoSplat
) -> None:
    job = bench(card, keep="none")
    card.provoke(cuda=False)
    error = broken(await job.run())
    assert (error.code, error.retryable) == ("DEVICE_UNAVAILABLE", True)
    assert card.calls() == []


async def test_without_a_device_from_the_start_it_is_the_same(bench: Benches, card: FakeTripoSplat) -> None:
    card.provoke(cuda=False)
    error = broken(await bench(card, keep="all", live_preview=True).run())
    assert (error.code, error.retryable) == ("DEVICE_UNAVAILABLE", True)


FAULTS: dict[str, tuple[dict[str, Any], str]] = {
    "latent": ({"latent": "nan"}, "NUMERICAL_FAILURE"),
    "gaussians": ({"lost": 0.01}, "NUMERICAL_FAILURE"),
    "invisible": ({"clear": 0.6}, "DEGENERATE_OUTPUT"),
    "few": ({"share": 0.5}, "DEGENERATE_OUTPUT"),
    "flat": ({"flat": True}, "DEGENERATE_OUTPUT"),
}


@pytest.mark.parametrize(("faults", "code"), FAULTS.values(), ids=FAULTS)
async def test_what_is_no_result_is_refused(
    bench: Benches, fake: FakeTripoSplat, faults: dict[str, Any], code: str
) -> None:
    fake.provoke(**faults)
    error = broken(await bench(fake, live_preview=False).run())
    assert (error.code, error.retryable) == (code, False)


async def test_a_crash_of_the_model_is_one_of_the_kernel(bench: Benches, fake: FakeTripoSplat) -> None:
    fake.provoke(crash="step")
    job = bench(fake)
    assert broken(await job.run()).code == "KERNEL_CRASHED"
    fake.provoke()
    made(await job.run())


def _changed_source(fake: FakeTripoSplat) -> None:
    path = fake.folder / "checkout" / "model.py"
    path.write_text(path.read_text(encoding="utf-8") + "\n", encoding="utf-8")


def _changed_weights(fake: FakeTripoSplat) -> None:
    path = fake.folder / "checkout/ckpts/vae/flux2-vae.safetensors"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)


def _no_weights(fake: FakeTripoSplat) -> None:
    (fake.folder / "checkout/ckpts/clip_vision/dino_v3_vit_h.safetensors").unlink()


def _torch_mismatch(fake: FakeTripoSplat) -> None:
    fake.provoke(torch_error="operator torchvision::nms does not exist")


CHECKOUTS: dict[str, tuple[Callable[[Any], None], str]] = {
    "source": (_changed_source, "MODEL_CHECKSUM_MISMATCH"),
    "weights": (_changed_weights, "MODEL_CHECKSUM_MISMATCH"),
    "missing": (_no_weights, "MODEL_NOT_INSTALLED"),
    "torch": (_torch_mismatch, "MODEL_NOT_INSTALLED"),
}


@pytest.mark.parametrize(("change", "code"), CHECKOUTS.values(), ids=CHECKOUTS)
async def test_another_checkout_than_the_pinned_is_not_run(
    bench: Benches, fresh: FakeTripoSplat, change: Callable[[Any], None], code: str
) -> None:
    change(fresh)
    error = broken(await bench(fresh).run())
    assert error.code == code
    assert str(fresh.folder) not in error.message
    assert fresh.calls() == []


async def test_weights_that_change_under_it_are_not_loaded(bench: Benches, fresh: FakeTripoSplat) -> None:
    job = bench(fresh, keep="none")
    made(await job.run())
    _changed_weights(fresh)
    assert broken(await job.run()).code == "MODEL_CHECKSUM_MISMATCH"
