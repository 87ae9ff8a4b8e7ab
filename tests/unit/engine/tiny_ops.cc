#include "tests/unit/engine/tiny_ops.h"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace npumesh {
namespace {

const int64_t* In(const KernelArgs& args, int slot) {
  return static_cast<const int64_t*>(args.in[slot]);
}
int64_t* Out(const KernelArgs& args) {
  return static_cast<int64_t*>(args.out[0]);
}

using KernelResult = Result<std::unique_ptr<Kernel>>;

Status InferLikeFirst(OpContext& context) {
  context.set_out(0, context.in(0));
  return Status();
}

Status InferScalar(OpContext& context) {
  context.set_out(0, {DataType::kInt64, Shape()});
  return Status();
}

Status InferNothing(OpContext&) {
  return Status();
}

// An operator whose kernel is `body(args, n)` with n the elements of its first input.
template <typename Body>
MakeKernelFn PerElements(Body body) {
  return [body](const OpContext& context) -> KernelResult {
    const int64_t n = context.slots() > 0 ? context.in(0).shape.elements() : 0;
    return MakeKernel([body, n](const KernelArgs& args) -> Status { return body(args, n); });
  };
}

Operator Op(std::string_view type, std::vector<PortSpec> inputs, InferFn infer, MakeKernelFn make) {
  Operator op;
  op.schema = {type, std::move(inputs), {{"y"}}, {}};
  op.infer = std::move(infer);
  op.make_kernel = std::move(make);
  return op;
}

void AddArithmetic(OpRegistry& registry) {
  Operator plus = Op("Plus", {{"x1"}, {"x2"}}, InferLikeFirst, PerElements([](auto& args, auto n) {
                       for (int64_t i = 0; i < n; ++i)
                         Out(args)[i] = In(args, 0)[i] + In(args, 1)[i];
                       return Status();
                     }));
  plus.axes = "[..]";
  registry.Add(plus);
  Operator negate = Op("Negate", {{"x"}}, InferLikeFirst, PerElements([](auto& args, auto n) {
                         for (int64_t i = 0; i < n; ++i) Out(args)[i] = -In(args, 0)[i];
                         return Status();
                       }));
  negate.axes = "[..]";
  registry.Add(negate);
  registry.Add(Op("Total", {{"x"}}, InferScalar, PerElements([](auto& args, auto n) {
                    *Out(args) = std::accumulate(In(args, 0), In(args, 0) + n, int64_t{0});
                    return Status();
                  })));
  const auto copy = PerElements([](auto& args, auto n) {
    std::copy_n(In(args, 0), n, Out(args));
    return Status();
  });
  registry.Add(Op("Move", {{"x"}}, InferLikeFirst, copy));
  registry.Add(Op("TensorMove", {{"x"}}, InferLikeFirst, copy));
  Operator random = Op("Random", {{"x"}}, InferLikeFirst, copy);
  random.pure = false;
  registry.Add(random);
}

void AddShapes(OpRegistry& registry) {
  const auto from_values = [](std::string_view port) -> InferFn {
    return [port](OpContext& context) {
      NPUMESH_ASSIGN_OR_RETURN(std::vector<int64_t> dims, context.Ints(port));
      context.set_out(0, {DataType::kInt64, Shape(std::move(dims))});
      return Status();
    };
  };
  Operator reshape = Op("Reshape", {{"x"}, {"shape"}}, from_values("shape"), nullptr);
  reshape.view = true;
  reshape.value_inputs = {"shape"};
  registry.Add(reshape);
  Operator zeros = Op("Zeros", {{"dims"}}, from_values("dims"), [](const OpContext& context) {
    const uint64_t bytes = context.out(0).bytes();
    return KernelResult(MakeKernel([bytes](const KernelArgs& args) {
      if (bytes > 0) std::memset(args.out[0], 0, bytes);
      return Status();
    }));
  });
  zeros.value_inputs = {"dims"};
  registry.Add(zeros);
  Operator shape = Op(
      "Shape", {{"x"}},
      [](OpContext& context) {
        context.set_out(0, {DataType::kInt64, Shape({context.in(0).shape.rank()})});
        return Status();
      },
      [](const OpContext& context) -> KernelResult {
        return MakeKernel([dims = context.in(0).shape.dims()](const KernelArgs& args) {
          std::copy(dims.begin(), dims.end(), Out(args));
          return Status();
        });
      });
  shape.axes = "x[..] -> y[#..]";
  registry.Add(shape);
  registry.Add(Op("Pick", {{"x"}, {"i"}}, InferScalar, PerElements([](auto& args, auto n) {
                    const int64_t i = *In(args, 1);
                    if (i < 0 || i >= n) return Error(Code::kInvalidArgument, "no element {}", i);
                    *Out(args) = In(args, 0)[i];
                    return Status();
                  })));
  registry.Add(Op(
      "Pack", {{"x", PortKind::kDynamic}},
      [](OpContext& context) {
        context.set_out(0, {DataType::kInt64, Shape({context.count("x")})});
        return Status();
      },
      [](const OpContext& context) {
        const int n = context.count("x");
        return KernelResult(MakeKernel([n](const KernelArgs& args) {
          for (int i = 0; i < n; ++i) Out(args)[i] = *In(args, i);
          return Status();
        }));
      }));
}

void AddInPlace(OpRegistry& registry) {
  Operator store =
      Op("Store", {{"ref"}, {"value"}}, InferLikeFirst, PerElements([](auto& args, auto n) {
           std::copy_n(In(args, 1), n, Out(args));
           return Status();
         }));
  store.in_place = {{0, 0}};
  registry.Add(store);
  Operator accumulate =
      Op("Accumulate", {{"ref"}, {"value"}}, InferLikeFirst, PerElements([](auto& args, auto n) {
           for (int64_t i = 0; i < n; ++i) Out(args)[i] += In(args, 1)[i];
           return Status();
         }));
  accumulate.in_place = {{0, 0}};
  registry.Add(accumulate);
  Operator all = Op("AccumulateAll", {{"value"}, {"refs", PortKind::kDynamic}}, InferNothing,
                    [](const OpContext& context) {
                      const int lists = context.count("refs");
                      const int64_t n = context.in(0).shape.elements();
                      return KernelResult(MakeKernel([lists, n](const KernelArgs& args) {
                        for (int slot = 1; slot <= lists; ++slot) {
                          auto* ref = const_cast<int64_t*>(In(args, slot));
                          for (int64_t i = 0; i < n; ++i) ref[i] += In(args, 0)[i];
                        }
                        return Status();
                      }));
                    });
  all.schema.outputs = {};
  all.in_place = {{0, 1}};
  registry.Add(all);
}

void AddEffects(OpRegistry& registry) {
  const auto nothing = PerElements([](auto&, auto) { return Status(); });
  Operator print = Op("Print", {{"x"}}, InferNothing, nothing);
  print.schema.outputs = {};
  print.side_effect = true;
  registry.Add(print);
  Operator send = Op("Send", {{"x"}}, InferNothing, nothing);
  send.schema.outputs = {};
  send.collective = CollectiveTrait();
  registry.Add(send);
  Operator meet = Op("Meet", {{"x"}}, InferLikeFirst, [](const OpContext& context) -> KernelResult {
    NPUMESH_ASSIGN_OR_RETURN(Communicator* const communicator,
                             context.groups()->Group(context.attr_string("group")));
    const auto n = static_cast<uint64_t>(context.in(0).shape.elements());
    return MakeKernel([communicator, n](const KernelArgs& args) {
      return communicator->AllReduce(args.in[0], args.out[0], n, DataType::kInt64, ReduceOp::kSum);
    });
  });
  meet.schema.attrs = {{"group", AttrValue::String(std::string(kWorldGroup))}};
  meet.collective = CollectiveTrait();
  registry.Add(meet);
}

void AddFailures(OpRegistry& registry) {
  const auto refuse = [](const OpContext& context) -> KernelResult {
    return Error(Code::kUnsupported, "{}: no kernel for {}", context.Who(),
                 context.in(0).ToString());
  };
  registry.Add(Op("Fail", {{"x"}}, InferLikeFirst, PerElements([](auto&, auto) {
                    return Error(Code::kInvalidArgument, "out of luck");
                  })));
  registry.Add(Op("NoKernel", {{"x"}}, InferLikeFirst, refuse));
  registry.Add(Op(
      "NoInfer", {{"x"}}, [](OpContext&) { return Error(Code::kUnsupported, "cannot tell"); },
      refuse));
  registry.Add(Op("Bare", {{"x"}}, InferLikeFirst, nullptr));
}

}  // namespace

OpRegistry TinyOps() {
  OpRegistry registry;
  AddArithmetic(registry);
  AddShapes(registry);
  AddInPlace(registry);
  AddEffects(registry);
  AddFailures(registry);
  return registry;
}

std::vector<int64_t> IntsIn(const Tensor& tensor) {
  const auto span = tensor.as<int64_t>();
  return {span.begin(), span.end()};
}

Tensor IntTensor(const std::vector<int64_t>& values) {
  return IntTensor(Shape({static_cast<int64_t>(values.size())}), values);
}

Tensor IntTensor(Shape shape, const std::vector<int64_t>& values) {
  return Tensor::FromVector(IntType(std::move(shape)), values);
}

TensorType IntType(Shape shape) {
  return {DataType::kInt64, std::move(shape)};
}

}  // namespace npumesh
