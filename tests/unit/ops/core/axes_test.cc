// Texts of axes: what they say, what follows from it, what is refused, and how they are read for a
// node.
#include "graph/ops/core/axes.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "graph/ops/builtin_ops.h"
#include "graph/ops/core/bound_axes.h"

namespace npumesh {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// ---- texts ----

TEST(Axes, SayLettersGroupsAndWhatIsTakenOfThem) {
  const Axes axes =
      "x[n g..! a* k+ | turned], w[2a r@where], p[#g], s[?] -> y[..^perm a?keep m?], z[1..]; "
      "a = dims, mode == -1, steps > 0";
  const PortAxes& x = *axes.input("x");
  EXPECT_EQ(x.swapped, "turned");
  ASSERT_EQ(x.terms.size(), 4u);
  EXPECT_TRUE(x.terms[1].group);
  EXPECT_EQ(x.terms[1].name, "g");
  EXPECT_TRUE(x.terms[2].joined);
  EXPECT_EQ(axes.input("w")->terms[0].times, 2);
  EXPECT_TRUE(axes.input("p")->terms[0].counts);
  EXPECT_TRUE(axes.input("s")->spread);
  EXPECT_EQ(axes.input("t"), nullptr);
  const PortAxes& y = *axes.output("y");
  EXPECT_EQ(y.terms[0].name, "..");
  EXPECT_EQ(y.terms[0].order, "perm");
  EXPECT_EQ(y.terms[1].kept, "keep");
  EXPECT_TRUE(y.terms[2].optional);
  EXPECT_TRUE(axes.output("z")->terms[0].group);
  EXPECT_EQ(axes.letter("g").need, AxisNeed::kWhole);
  EXPECT_EQ(axes.letter("k").need, AxisNeed::kSum);
  EXPECT_EQ(axes.letter("r").need, AxisNeed::kPositions);
  EXPECT_EQ(axes.letter("r").positions, "where");
  EXPECT_EQ(axes.letter("a").place, "dims");
  EXPECT_EQ(axes.letter("n").need, AxisNeed::kPlace);
  ASSERT_EQ(axes.conditions().size(), 2u);
  EXPECT_EQ(axes.conditions()[0].value, -1);
  EXPECT_TRUE(axes.conditions()[1].greater);
}

TEST(Axes, RefusesWhatDoesNotFollowTheNotation) {
  const std::pair<const char*, const char*> cases[] = {
      {"x[..] y[..]", "character 7: expected \"->\""},
      {"x[.. -> y[..]", "expected an axis"},
      {"x[a@] -> y[]", "expected a port"},
      {"x[..^] -> y[]", "expected a port or an attribute"},
      {"x[a | ] -> y[]", "expected an attribute"},
      {"x -> y[..]", "expected \"[\""},
      {"x[a] -> y[a]; b = axes", "a letter before"},
      {"x[a] -> y[a]; a = ", "expected a port or an attribute"},
      {"x[a] -> y[a]; n == x", "expected a number"},
      {"[..] x", "expected the end"},
  };
  for (const auto& [text, objection] : cases) {
    const Result<Axes> axes = Axes::Parse(text);
    EXPECT_EQ(axes.status().code(), Code::kInvalidArgument) << text;
    EXPECT_THAT(axes.status().message(), HasSubstr(objection)) << text;
  }
}

TEST(Axes, TellWhatAnOperatorIs) {
  EXPECT_TRUE(Axes("[..]").elementwise());
  EXPECT_TRUE(Axes("x[n c ..], w[c] -> y[n c ..]").elementwise());
  EXPECT_FALSE(Axes("x[n c!], w[c] -> y[n c]").elementwise());
  EXPECT_FALSE(Axes("x[..], shape[#y] -> y[..]").elementwise());
  EXPECT_FALSE(Axes("x[a b] -> y[b]").elementwise());
  EXPECT_FALSE(Axes("x[..] -> y[..^perm]").elementwise());
  EXPECT_FALSE(Axes().elementwise());

  EXPECT_EQ(Axes("x[..] -> y[..^perm]").permutation(), "perm");
  EXPECT_EQ(Axes("[..]").permutation(), "");

  EXPECT_TRUE(Axes("x[..] -> y[#..]").shape_query());
  EXPECT_TRUE(Axes("x[..] -> y[]").shape_query());
  EXPECT_FALSE(Axes("x[..+] -> y[]").shape_query());
  EXPECT_FALSE(Axes("x[..] -> y[..]").shape_query());

  EXPECT_TRUE(Axes("dims[#y] -> y[..]").fills());
  EXPECT_FALSE(Axes("x[..], shape[#y] -> y[..]").fills());

  const Axes product = "a[m k+ | ta], b[k n | tb], c[n] -> y[m n]";
  ASSERT_TRUE(product.product());
  EXPECT_EQ(product.product()->left, "a");
  EXPECT_EQ(product.product()->right, "b");
  EXPECT_EQ(product.product()->left_transposed, "ta");
  EXPECT_EQ(product.product()->right_transposed, "tb");
  EXPECT_EQ(product.product()->bias, "c");
  EXPECT_FALSE(Axes("x[m k+] -> y[m]").product());

  EXPECT_EQ(Axes("x[r@i ..], i[n] -> y[n ..]").looked_up()->positions, "i");
  EXPECT_EQ(Axes("x[r@i ..], i[n] -> x[r ..]").looked_up(), nullptr);
}

// ---- the texts of operators ----

bool Knows(const OpSchema& schema, std::string_view name) {
  return std::ranges::find(schema.inputs, name, &PortSpec::name) != schema.inputs.end() ||
         std::ranges::find(schema.attrs, name, &AttrSpec::name) != schema.attrs.end();
}

TEST(Axes, OfOperatorsNameTheirPortsAndAttributes) {
  int texts = 0;
  for (const std::string_view type : BuiltinOps().Types()) {
    const Operator& op = *BuiltinOps().Find(type);
    const Axes& axes = op.axes;
    texts += axes.given() ? 1 : 0;
    std::vector<std::string_view> names;
    for (const PortAxes& port : axes.inputs()) names.push_back(port.port);
    for (const std::vector<PortAxes>* ports : {&axes.inputs(), &axes.outputs()}) {
      for (const PortAxes& port : *ports) {
        names.push_back(port.swapped);
        for (const AxisTerm& term : port.terms) {
          names.insert(names.end(), {term.kept, term.order});
        }
      }
    }
    for (const AxisLetter& letter : axes.letters()) {
      names.insert(names.end(), {letter.place, letter.positions});
    }
    for (const AxisCondition& condition : axes.conditions()) names.push_back(condition.name);
    for (const std::string_view name : names) {
      // Forms with an attribute in place of a port share the text.
      EXPECT_TRUE(name.empty() || Knows(op.schema, name)) << type << ": " << name;
    }
    for (const PortAxes& port : axes.outputs()) {
      EXPECT_NE(std::ranges::find(op.schema.outputs, port.port, &PortSpec::name),
                op.schema.outputs.end())
          << type << ": " << port.port;
    }
  }
  EXPECT_GT(texts, 100);
}

// ---- a node ----

// The letters of a tensor as numbers, in the order in which they were met; -1: an axis of size 1.
std::vector<int> Letters(const std::vector<BoundAxis>& axes) {
  std::vector<int> letters;
  for (const BoundAxis& axis : axes) letters.push_back(axis.letter);
  return letters;
}

struct Call {
  std::string type;
  std::vector<std::pair<std::string, Shape>> inputs;
  std::map<std::string, std::vector<int64_t>> values;  // in place of those of ports, attributes
  std::vector<Shape> outputs;
};

Result<BoundAxes> Bind(const Call& call) {
  const Operator& op = *BuiltinOps().Find(call.type);
  Node node;
  node.name = node.type = call.type;
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    node.inputs.push_back(Value{1, static_cast<int>(i)});
    node.input_descs.emplace_back().name = call.inputs[i].first;
  }
  for (const PortSpec& port : op.schema.outputs) {
    node.output_descs.emplace_back().name = std::string(port.name);
  }
  for (const AttrSpec& attr : op.schema.attrs) {
    if (!attr.fallback) node.attrs[std::string(attr.name)] = attr.pattern;
  }
  NPUMESH_ASSIGN_OR_RETURN(OpContext context, OpContext::Bind(node, op.schema));
  for (int slot = 0; slot < context.slots(); ++slot) {
    if (!context.has(slot)) continue;
    const auto input = static_cast<size_t>(context.input_index(slot));
    context.set_in(slot, {DataType::kFloat, call.inputs[input].second});
  }
  for (size_t i = 0; i < call.outputs.size(); ++i) {
    context.set_out(static_cast<int>(i), {DataType::kFloat, call.outputs[i]});
  }
  return BindAxes(op.axes, context, [&](std::string_view name) {
    const auto given = call.values.find(std::string(name));
    return given != call.values.end() ? std::optional(given->second) : ValuesOf(context)(name);
  });
}

TEST(BoundAxes, BroadcastFromTheLastAxis) {
  const auto bound = Bind({"Add", {{"x1", {2, 3, 4}}, {"x2", {1, 4}}}, {}, {{2, 3, 4}}});
  ASSERT_TRUE(bound.ok()) << bound.status().message();
  EXPECT_THAT(Letters(bound->inputs[0]), ElementsAre(0, 1, 2));
  EXPECT_THAT(Letters(bound->inputs[1]), ElementsAre(1, 2));
  EXPECT_THAT(Letters(bound->outputs[0]), ElementsAre(0, 1, 2));
  EXPECT_EQ(bound->letters[1].size, 3);
  EXPECT_EQ(Bind({"Add", {{"x1", {2, 3}}, {"x2", {2}}}, {}, {{2, 3}}}).status().code(),
            Code::kInternal);
}

TEST(BoundAxes, OfProductsFollowTheirTranspositions) {
  Call call{"BatchMatMul", {{"x1", {5, 2, 3}}, {"x2", {4, 3}}}, {{"adj_x2", {1}}}, {{5, 2, 4}}};
  const auto bound = Bind(call);
  ASSERT_TRUE(bound.ok()) << bound.status().message();
  EXPECT_THAT(Letters(bound->inputs[0]), ElementsAre(0, 1, 2));
  EXPECT_THAT(Letters(bound->inputs[1]), ElementsAre(3, 2));
  EXPECT_THAT(Letters(bound->outputs[0]), ElementsAre(0, 1, 3));
  EXPECT_EQ(bound->letters[2].need, AxisNeed::kSum);
  call.values.clear();
  EXPECT_EQ(Bind(call).status().code(), Code::kInternal);
  const auto vector = Bind({"MatMul", {{"x1", {3}}, {"x2", {3, 4}}}, {}, {{4}}});
  ASSERT_TRUE(vector.ok()) << vector.status().message();
  EXPECT_THAT(Letters(vector->inputs[0]), ElementsAre(0));
  EXPECT_THAT(Letters(vector->outputs[0]), ElementsAre(1));
}

TEST(BoundAxes, StandWhereValuesSay) {
  Call call{"ReduceSum", {{"x", {2, 3, 4}}, {"axes", {1}}}, {{"axes", {-2}}}, {{2, 4}}};
  const auto dropped = Bind(call);
  ASSERT_TRUE(dropped.ok()) << dropped.status().message();
  EXPECT_EQ(dropped->letters[static_cast<size_t>(dropped->inputs[0][1].letter)].need,
            AxisNeed::kWhole);
  EXPECT_EQ(dropped->outputs[0][0].letter, dropped->inputs[0][0].letter);
  EXPECT_EQ(dropped->outputs[0][1].letter, dropped->inputs[0][2].letter);
  call.values["keep_dims"] = {1};
  call.outputs = {{2, 1, 4}};
  const auto kept = Bind(call);
  ASSERT_TRUE(kept.ok()) << kept.status().message();
  EXPECT_EQ(kept->outputs[0][1].letter, -1);
  EXPECT_EQ(kept->outputs[0][2].letter, kept->inputs[0][2].letter);
  call.values["axes"] = {};
  EXPECT_EQ(Bind(call).status().code(), Code::kUnsupported);
}

TEST(BoundAxes, OfLookupsHaveThePositionsInPlaceOfTheAxis) {
  const auto bound = Bind({"GatherV2",
                           {{"x", {2, 9, 4}}, {"indices", {5, 6}}, {"axis", {}}},
                           {{"axis", {1}}},
                           {{2, 5, 6, 4}}});
  ASSERT_TRUE(bound.ok()) << bound.status().message();
  const std::vector<int> x = Letters(bound->inputs[0]), at = Letters(bound->inputs[1]);
  EXPECT_THAT(Letters(bound->outputs[0]), ElementsAre(x[0], at[0], at[1], x[2]));
  EXPECT_EQ(bound->letters[static_cast<size_t>(x[1])].positions, "indices");
  const auto batched = Bind({"GatherV2",
                             {{"x", {2, 9, 4}}, {"indices", {2, 6}}, {"axis", {}}},
                             {{"axis", {1}}, {"batch_dims", {1}}},
                             {{2, 6, 4}}});
  EXPECT_EQ(batched.status().code(), Code::kUnsupported);
}

TEST(BoundAxes, ArePermuted) {
  const auto bound =
      Bind({"Transpose", {{"x", {2, 3, 4}}, {"perm", {3}}}, {{"perm", {2, 0, 1}}}, {{4, 2, 3}}});
  ASSERT_TRUE(bound.ok()) << bound.status().message();
  const std::vector<int> x = Letters(bound->inputs[0]);
  EXPECT_THAT(Letters(bound->outputs[0]), ElementsAre(x[2], x[0], x[1]));
}

TEST(BoundAxes, CountGroupsByOtherTensors) {
  const auto norm =
      Bind({"RmsNorm", {{"x", {2, 3, 4}}, {"gamma", {3, 4}}}, {}, {{2, 3, 4}, {2, 1, 1}}});
  ASSERT_TRUE(norm.ok()) << norm.status().message();
  const auto need = [&](int axis) {
    const int letter = norm->inputs[0][static_cast<size_t>(axis)].letter;
    return norm->letters[static_cast<size_t>(letter)].need;
  };
  EXPECT_EQ(need(0), AxisNeed::kPlace);
  EXPECT_EQ(need(1), AxisNeed::kWhole);
  EXPECT_THAT(Letters(norm->outputs[1]), ElementsAre(Letters(norm->inputs[0])[0], -1, -1));
  const auto update = Bind({"ScatterNdUpdate",
                            {{"var", {5, 6, 7}}, {"indices", {3, 2}}, {"updates", {3, 7}}},
                            {},
                            {{5, 6, 7}}});
  ASSERT_TRUE(update.ok()) << update.status().message();
  EXPECT_EQ(Letters(update->inputs[2])[1], Letters(update->inputs[0])[2]);
  EXPECT_EQ(Letters(update->inputs[1])[0], Letters(update->inputs[2])[0]);
}

TEST(BoundAxes, FallIntoParts) {
  const auto joined = Bind({"ConcatV2",
                            {{"x0", {2, 3}}, {"x1", {2, 5}}, {"concat_dim", {}}},
                            {{"concat_dim", {1}}},
                            {{2, 8}}});
  ASSERT_TRUE(joined.ok()) << joined.status().message();
  EXPECT_TRUE(joined->outputs[0][1].joined);
  EXPECT_EQ(joined->letters[static_cast<size_t>(joined->outputs[0][1].letter)].size, 8);
  const auto halves = Bind({"SwiGlu", {{"x", {2, 6}}}, {{"dim", {-1}}}, {{2, 3}}});
  ASSERT_TRUE(halves.ok()) << halves.status().message();
  EXPECT_EQ(halves->inputs[0][1].times, 2);
  EXPECT_EQ(halves->inputs[0][1].letter, halves->outputs[0][1].letter);
  EXPECT_EQ(Bind({"SwiGlu", {{"x", {2, 6}}}, {{"dim", {-1}}}, {{2, 4}}}).status().code(),
            Code::kInternal);
}

}  // namespace
}  // namespace npumesh
