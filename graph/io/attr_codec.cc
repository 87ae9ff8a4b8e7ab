#include "graph/io/attr_codec.h"

#include <utility>

#include "graph/io/wire.h"

namespace npumesh {
namespace {

namespace pb = ge::proto;

template <typename Repeated>
auto Take(Repeated* field) {
  using T = typename std::decay_t<Repeated>::value_type;
  std::vector<T> values(std::make_move_iterator(field->begin()),
                        std::make_move_iterator(field->end()));
  field->Clear();
  return values;
}

std::string Take(std::string* field) {
  return std::exchange(*field, {});
}

ListAttr DecodeList(pb::AttrDef::ListValue& def) {
  ListAttr list;
  list.kind = static_cast<ListKind>(def.val_type());
  def.clear_val_type();
  list.s = Take(def.mutable_s());
  list.i = Take(def.mutable_i());
  list.f = Take(def.mutable_f());
  list.b = Take(def.mutable_b());
  for (int64_t number : def.dt()) list.dt.push_back(static_cast<DataType>(number));
  def.clear_dt();
  list.opaque = Remainder(def);
  return list;
}

NamedAttrs DecodeNamedAttrs(pb::NamedAttrs& def) {
  NamedAttrs named;
  named.name = Take(def.mutable_name());
  named.attrs = std::make_shared<AttrMap>(DecodeAttrs(def.mutable_attr()));
  named.opaque = Remainder(def);
  return named;
}

TensorAttr DecodeTensor(pb::TensorDef& def) {
  TensorAttr tensor;
  tensor.desc = std::make_shared<TensorDesc>();
  if (def.has_desc()) {
    *tensor.desc = DecodeDesc(*def.mutable_desc());
    def.clear_desc();
  }
  if (!tensor.desc->shape) tensor.desc->shape = Shape();  // of a constant, none means scalar
  tensor.data = std::make_shared<const std::string>(Take(def.mutable_data()));
  tensor.opaque = Remainder(def);
  return tensor;
}

// Rows with unknown fields stay in the message, emptied, so that encoding finds them again.
ListListInt DecodeListListInt(pb::AttrDef& def, bool* keep) {
  ListListInt lists;
  auto& message = *def.mutable_list_list_int();
  *keep = HasUnknownFields(message);
  for (auto& row : *message.mutable_list_list_i()) {
    lists.values.push_back(Take(row.mutable_list_i()));
    *keep |= HasUnknownFields(row);
  }
  return lists;
}

ListListFloat DecodeListListFloat(pb::AttrDef& def, bool* keep) {
  ListListFloat lists;
  auto& message = *def.mutable_list_list_float();
  *keep = HasUnknownFields(message);
  for (auto& row : *message.mutable_list_list_f()) {
    lists.values.push_back(Take(row.mutable_list_f()));
    *keep |= HasUnknownFields(row);
  }
  return lists;
}

AttrValue::Variant DecodeValue(pb::AttrDef& def, bool* keep) {
  switch (def.value_case()) {
    case pb::AttrDef::kI:
      return def.i();
    case pb::AttrDef::kF:
      return def.f();
    case pb::AttrDef::kB:
      return def.b();
    case pb::AttrDef::kS:
      return Take(def.mutable_s());
    case pb::AttrDef::kBt:
      return BytesAttr{Take(def.mutable_bt())};
    case pb::AttrDef::kDt:
      return DataTypeAttr{def.dt()};
    case pb::AttrDef::kT:
      return DecodeTensor(*def.mutable_t());
    case pb::AttrDef::kTd:
      return TensorDescAttr{std::make_shared<TensorDesc>(DecodeDesc(*def.mutable_td()))};
    case pb::AttrDef::kList:
      return DecodeList(*def.mutable_list());
    case pb::AttrDef::kFunc:
      return DecodeNamedAttrs(*def.mutable_func());
    case pb::AttrDef::kListListInt:
      return DecodeListListInt(def, keep);
    case pb::AttrDef::kListListFloat:
      return DecodeListListFloat(def, keep);
    default:
      return OpaqueAttr{SerializeWire(def)};
  }
}

// Writes one alternative of AttrValue into an AttrDef that may hold unknown fields already.
class ValueEncoder {
 public:
  ValueEncoder(Form form, pb::AttrDef* def) : form_(form), def_(def) {}

  void operator()(const OpaqueAttr& v) { RestoreRemainder(v.bytes, def_); }
  void operator()(int64_t v) { def_->set_i(v); }
  void operator()(float v) { def_->set_f(v); }
  void operator()(bool v) { def_->set_b(v); }
  void operator()(const std::string& v) { def_->set_s(v); }
  void operator()(const BytesAttr& v) { def_->set_bt(v.bytes); }
  void operator()(const DataTypeAttr& v) { def_->set_dt(v.number); }
  void operator()(const TensorAttr& v) {
    pb::TensorDef* tensor = def_->mutable_t();
    RestoreRemainder(v.opaque, tensor);
    EncodeDesc(*v.desc, form_, tensor->mutable_desc());
    tensor->set_data(*v.data);
  }
  void operator()(const TensorDescAttr& v) { EncodeDesc(*v.desc, form_, def_->mutable_td()); }
  void operator()(const NamedAttrs& v) {
    pb::NamedAttrs* named = def_->mutable_func();
    RestoreRemainder(v.opaque, named);
    named->set_name(v.name);
    EncodeAttrs(*v.attrs, form_, named->mutable_attr());
  }
  void operator()(const ListAttr& v) {
    pb::AttrDef::ListValue* list = def_->mutable_list();
    RestoreRemainder(v.opaque, list);
    list->mutable_s()->Assign(v.s.begin(), v.s.end());
    list->mutable_i()->Assign(v.i.begin(), v.i.end());
    list->mutable_f()->Assign(v.f.begin(), v.f.end());
    list->mutable_b()->Assign(v.b.begin(), v.b.end());
    for (DataType dtype : v.dt) list->add_dt(static_cast<int64_t>(dtype));
    list->set_val_type(static_cast<pb::AttrDef::ListValue::ListValueType>(v.kind));
  }
  void operator()(const ListListInt& v) {
    auto* rows = def_->mutable_list_list_int()->mutable_list_list_i();
    FitRows(rows, v.values.size());
    for (size_t i = 0; i < v.values.size(); ++i) {
      rows->Mutable(static_cast<int>(i))
          ->mutable_list_i()
          ->Assign(v.values[i].begin(), v.values[i].end());
    }
  }
  void operator()(const ListListFloat& v) {
    auto* rows = def_->mutable_list_list_float()->mutable_list_list_f();
    FitRows(rows, v.values.size());
    for (size_t i = 0; i < v.values.size(); ++i) {
      rows->Mutable(static_cast<int>(i))
          ->mutable_list_f()
          ->Assign(v.values[i].begin(), v.values[i].end());
    }
  }

 private:
  template <typename Rows>
  static void FitRows(Rows* rows, size_t count) {
    while (rows->size() > static_cast<int>(count)) rows->RemoveLast();
    while (rows->size() < static_cast<int>(count)) rows->Add();
  }

  Form form_;
  pb::AttrDef* def_;
};

}  // namespace

AttrValue DecodeAttr(pb::AttrDef& def) {
  bool keep = false;
  AttrValue value(DecodeValue(def, &keep));
  if (value.get<OpaqueAttr>() != nullptr) return value;
  if (!keep) def.clear_value();
  value.set_opaque(Remainder(def));
  return value;
}

AttrMap DecodeAttrs(AttrDefs* defs) {
  AttrMap attrs;
  for (auto& [key, def] : *defs) attrs.emplace(key, DecodeAttr(def));
  defs->clear();
  return attrs;
}

void EncodeAttr(const AttrValue& value, Form form, pb::AttrDef* def) {
  RestoreRemainder(value.opaque(), def);
  std::visit(ValueEncoder(form, def), value.variant());
}

void EncodeAttrs(const AttrMap& attrs, Form form, AttrDefs* defs) {
  for (const auto& [key, value] : attrs) EncodeAttr(value, form, &(*defs)[key]);
}

}  // namespace npumesh
