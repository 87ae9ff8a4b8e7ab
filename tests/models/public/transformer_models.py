#!/usr/bin/env python3
"""Small transformers of Hugging Face with random weights, written by torch's exporter, beside ONNX Runtime.

    transformer_models.py [--only PART] [--packages FOLDER] [--seconds N] [--json FILE] [--keep FOLDER]

bert, distilbert, gpt2, llama, t5, whisper and clip, each in three forms: as exported; fused by ONNX Runtime's
optimiser of transformers; and with products of bytes whose scales are found while the model runs (quantize_dynamic).
Each case runs in a separate process, on one thread, through npumesh's Python package (PYTHONPATH and NPUMESH_LIBRARY
as for every Python test). --packages is where transformers lies (fetch_models.py --transformers), if not beside torch.

What is said of one is that of architectures.py: same, noisy, differs, fails, ends, no model. Products of bytes round
where floats do not: there `noisy` is what ONNX Runtime's own processors would differ by, a 32nd of the largest number.
Exit code 1 where one differs, fails or ends; 77 (skipped) without torch, transformers, onnx or onnxruntime.
"""

import argparse
import contextlib
import json
import logging
import os
import sys
import tempfile
import warnings

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from architectures import best_of, furthest, report, run_apart
from in_venv import run_in_venv

FORMS = ["exported", "optimised", "quantised"]
# torch's exporter writes attention as it stands here; of the fused one it refuses masks of integers.
EAGER = {"attn_implementation": "eager"}
WIDE = {"hidden_size": 64, "num_attention_heads": 4, "intermediate_size": 128, "num_hidden_layers": 2, "vocab_size": 200}


def ids(shape, most=200):
    import torch
    return torch.randint(3, most, shape)


def encoder(name):
    """bert or distilbert: the module, its operands and their names."""
    import torch
    import transformers as hf
    if name == "bert":
        module = hf.BertModel(hf.BertConfig(max_position_embeddings=64, **WIDE, **EAGER))
        return module, (ids((2, 12)), torch.ones(2, 12, dtype=torch.int64)), ["input_ids", "attention_mask"]
    module = hf.DistilBertModel(hf.DistilBertConfig(dim=64, n_heads=4, hidden_dim=128, n_layers=2, vocab_size=200,
                                                    max_position_embeddings=64, **EAGER))
    return module, (ids((2, 12)), torch.ones(2, 12, dtype=torch.int64)), ["input_ids", "attention_mask"]


def decoder(name):
    import torch
    import transformers as hf
    if name == "gpt2":
        config = hf.GPT2Config(n_embd=64, n_head=4, n_layer=2, n_positions=64, vocab_size=200, use_cache=False,
                               **EAGER)
        module = hf.GPT2LMHeadModel(config)
    else:
        module = hf.LlamaForCausalLM(hf.LlamaConfig(num_key_value_heads=2, max_position_embeddings=64, use_cache=False,
                                                    **WIDE, **EAGER))
    return module, (ids((2, 12)), torch.ones(2, 12, dtype=torch.int64)), ["input_ids", "attention_mask"]


def both_sides(name):
    """t5, whisper, clip: what the exporter has no wrapper for is called with names."""
    import torch
    import transformers as hf
    if name == "t5":
        module = hf.T5ForConditionalGeneration(hf.T5Config(d_model=64, d_kv=16, d_ff=128, num_layers=2, num_heads=4,
                                                           vocab_size=200, use_cache=False, **EAGER))
        return module, (ids((2, 12)), torch.ones(2, 12, dtype=torch.int64), ids((2, 5))), \
            ["input_ids", "attention_mask", "decoder_input_ids"]
    if name == "whisper":
        config = hf.WhisperConfig(d_model=64, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
                                  decoder_attention_heads=4, encoder_ffn_dim=128, decoder_ffn_dim=128, vocab_size=200,
                                  num_mel_bins=20, max_source_positions=50, max_target_positions=40, pad_token_id=0,
                                  bos_token_id=1, eos_token_id=2, decoder_start_token_id=1, use_cache=False, **EAGER)
        return hf.WhisperForConditionalGeneration(config), (torch.randn(2, 20, 100), ids((2, 5))), \
            ["input_features", "decoder_input_ids"]
    text = {"vocab_size": 200, "max_position_embeddings": 32, "eos_token_id": 2, "bos_token_id": 1,
            **{key: value for key, value in WIDE.items() if key != "vocab_size"}}
    image = {"image_size": 32, "patch_size": 8, **{key: value for key, value in WIDE.items() if key != "vocab_size"}}
    module = hf.CLIPModel(hf.CLIPConfig(text_config=text, vision_config=image, projection_dim=32, **EAGER))
    tokens = ids((2, 12))
    tokens[:, -1] = 2
    return module, (tokens, torch.randn(2, 3, 32, 32), torch.ones(2, 12, dtype=torch.int64)), \
        ["input_ids", "pixel_values", "attention_mask"]


MAKERS = {"bert": encoder, "distilbert": encoder, "gpt2": decoder, "llama": decoder, "t5": both_sides,
          "whisper": both_sides, "clip": both_sides}
OPTIMISERS = {"bert": "bert", "distilbert": "bert", "gpt2": "gpt2", "llama": "gpt2", "t5": "t5", "whisper": "bart",
              "clip": "clip"}


def mask_by_broadcasting():
    """transformers maps its functions of masks over positions with vmap, which torch's exporter does not follow, and
    looks for several texts in a row with aten::diff, which it does not know; here each row is one text."""
    from transformers import masking_utils

    def over_positions(function, bh_indices=True):
        def mask(batch, head, query, key):
            sizes = [len(each) for each in (batch, head, query, key)]
            return function(batch[:, None, None, None], head[None, :, None, None], query[None, None, :, None],
                            key[None, None, None, :]).expand(sizes)
        return mask
    masking_utils._vmap_for_bhqkv = over_positions
    masking_utils.TransformGetItemToIndex = contextlib.nullcontext
    masking_utils.find_packed_sequence_indices = lambda position_ids: None


def export(name, path):
    """Writes the model; its inputs by name."""
    import torch
    torch.manual_seed(1)
    mask_by_broadcasting()
    module, operands, names = MAKERS[name](name)
    module.eval()

    class Named(torch.nn.Module):
        """The first outputs that are tensors, of operands by name."""

        def __init__(self):
            super().__init__()
            self.inside = module

        def forward(self, *given):
            found = self.inside(**dict(zip(names, given)), return_dict=True)
            keys = ["logits_per_image", "text_embeds", "logits", "last_hidden_state"]
            return tuple(found[key] for key in keys if key in found)

    open_dims = {each: {0: "batch"} for each in names}
    torch.onnx.export(Named(), operands, path, opset_version=17, dynamo=False, input_names=names,
                      dynamic_axes=open_dims)
    return {each: operand.numpy() for each, operand in zip(names, operands)}


def reform(name, form, path):
    """Writes the form beside the model; its path."""
    to = path.replace(".onnx", f".{form}.onnx")
    if form == "exported":
        return path
    if form == "optimised":
        from onnxruntime.transformers import optimizer
        model = optimizer.optimize_model(path, model_type=OPTIMISERS[name], num_heads=4, hidden_size=64, opt_level=0)
        model.save_model_to_file(to)
        return to
    from onnxruntime.quantization import QuantType, quantize_dynamic
    quantize_dynamic(path, to, weight_type=QuantType.QInt8)
    return to


def beside(path, inputs, level=None):
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    if level is not None:
        options.graph_optimization_level = level
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    feeds = {each.name: inputs[each.name] for each in session.get_inputs()}
    return session, feeds, session.run(None, feeds)


def try_one(case, keep):
    """What is said of "name/form", as a dictionary."""
    warnings.filterwarnings("ignore")
    logging.disable(logging.CRITICAL)
    import onnxruntime
    import torch
    torch.set_num_threads(1)
    name, form = case.split("/")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(keep or folder, name + ".onnx")
        try:
            inputs = export(name, path)
            path = reform(name, form, path)
            session, feeds, right = beside(path, inputs)
        except Exception as why:
            return {"said": "no model", "why": f"{type(why).__name__}: {why}".split("\n", maxsplit=1)[0][:200]}
        import npumesh
        try:
            graph = npumesh.World().load(path, threads=1)
            seen = graph.run(feeds)
        except Exception as why:
            return {"said": "fails", "why": " ".join(str(why).split())}
        most, near = furthest(seen, right)
        scale = max(float(abs(array).max()) for array in right)
        row = {"said": "same" if near else "differs", "difference": most, "scale": scale}
        if not near:
            _, _, other = beside(path, inputs, onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL)
            row["noise"] = furthest(other, right)[0]
            most_noise = max(4 * row["noise"], scale / 32 if form == "quantised" else 0)
            row["said"] = "noisy" if most < most_noise else "differs"
        row["ratio"] = best_of(lambda: graph.run(feeds)) / best_of(lambda: session.run(None, feeds))
        return row


def main():
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--only", default="", help="cases whose name has this part, as in bert/quantised")
    words.add_argument("--packages", default="")
    words.add_argument("--seconds", type=int, default=300)
    words.add_argument("--json")
    words.add_argument("--keep", default="", help="a folder that keeps the models")
    words.add_argument("--one", help=argparse.SUPPRESS)
    given = words.parse_args()
    if given.packages:
        sys.path.insert(0, given.packages)
    try:
        import onnx  # noqa: F401
        import onnxruntime  # noqa: F401
        import transformers  # noqa: F401
    except ImportError as missing:
        print(f"skipped: {missing}; launch/install_deps --torch, then fetch_models.py --transformers")
        return 77
    if given.one:
        print(json.dumps(try_one(given.one, given.keep)))
        return 0
    cases = [f"{name}/{form}" for name in MAKERS for form in FORMS if given.only in f"{name}/{form}"]
    keep = ["--keep", given.keep] if given.keep else []
    return report("cases", cases, lambda case: run_apart(__file__, case, given.packages, given.seconds, keep), given.json)


if __name__ == "__main__":
    run_in_venv()
    sys.exit(main())
