/// Tensors of every type and place.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>

#include "runtime/base/files.h"
#include "tests/unit/graph/onnx_builder.h"

namespace tensmith::graph {
namespace {

using Ints = std::vector<int64_t>;

/// Imports a model whose only output is the initializer "w".
Constant imported(OnnxBuilder& b, const std::string& folder = {}) {
  b.output("w");
  ImportResult result = b.import_model({}, folder);
  EXPECT_TRUE(result.ok()) << to_string(result.unsupported);
  return *result.graph.constant(result.graph.outputs.at(0));
}

onnx::TensorProto& tensor(OnnxBuilder& b, int dtype, const Ints& shape) {
  auto* t = b.graph().add_initializer();
  t->set_name("w");
  t->set_data_type(dtype);
  for (int64_t dim : shape) t->add_dims(dim);
  return *t;
}

TEST(ImportData, RawDataOfEveryType) {
  struct Case {
    int number;
    DType dtype;
    std::string raw;
    Ints values;
  };
  const Case cases[] = {
      {2, kUInt8, std::string("\xff\x01", 2), {255, 1}},
      {3, kInt8, std::string("\xff\x01", 2), {-1, 1}},
      {4, kUInt16, std::string("\xff\xff\x01\0", 4), {65535, 1}},
      {5, kInt16, std::string("\xff\xff\x01\0", 4), {-1, 1}},
      {6, kInt32, std::string("\xff\xff\xff\xff\x01\0\0\0", 8), {-1, 1}},
      {9, kBool, std::string("\x01\0", 2), {1, 0}},
      {10, kFloat16, std::string("\0\x3c\0\xc0", 4), {1, -2}},
      {12, kUInt32, std::string("\xff\xff\xff\xff\x01\0\0\0", 8), {4294967295, 1}},
      {16, kBFloat16, std::string("\x80\x3f\0\xc0", 4), {1, -2}},
      {21, kUInt4, std::string("\x1f", 1), {15, 1}},
      {22, kInt4, std::string("\x1f", 1), {-1, 1}},
  };
  for (const Case& c : cases) {
    OnnxBuilder b;
    tensor(b, c.number, {2}).set_raw_data(c.raw);
    const Constant w = imported(b);
    EXPECT_EQ(w.dtype(), c.dtype);
    EXPECT_EQ(w.ints(), c.values) << to_string(c.dtype);
  }
}

TEST(ImportData, TypedFieldsOfEveryType) {
  const auto typed = [](int number, const std::function<void(onnx::TensorProto&)>& fill) {
    OnnxBuilder b;
    fill(tensor(b, number, {3}));
    return imported(b);
  };
  const auto i32 = [](onnx::TensorProto& t) {
    for (int v : {-1, 0, 2}) t.add_int32_data(v);
  };
  EXPECT_EQ(typed(6, i32).ints(), (Ints{-1, 0, 2}));
  EXPECT_EQ(typed(5, i32).ints(), (Ints{-1, 0, 2}));
  EXPECT_EQ(typed(3, i32).ints(), (Ints{-1, 0, 2}));
  EXPECT_EQ(typed(2, i32).ints(), (Ints{255, 0, 2}));
  EXPECT_EQ(typed(9, i32).ints(), (Ints{1, 0, 1}));
  EXPECT_EQ(typed(10,
                  [](onnx::TensorProto& t) {
                    for (int v : {0x3c00, 0, 0xc000}) t.add_int32_data(v);
                  })
                .ints(),
            (Ints{1, 0, -2}));
  EXPECT_EQ(typed(7,
                  [](onnx::TensorProto& t) {
                    for (int v : {-1, 0, 2}) t.add_int64_data(v);
                  })
                .ints(),
            (Ints{-1, 0, 2}));
  EXPECT_EQ(typed(11,
                  [](onnx::TensorProto& t) {
                    for (int v : {-1, 0, 2}) t.add_double_data(v + 0.5);
                  })
                .float_at(0),
            -0.5);
  EXPECT_EQ(typed(13,
                  [](onnx::TensorProto& t) {
                    for (int v : {1, 0, 2}) t.add_uint64_data(v);
                  })
                .ints(),
            (Ints{1, 0, 2}));
  EXPECT_EQ(typed(12,
                  [](onnx::TensorProto& t) {
                    for (int v : {1, 0, 2}) t.add_uint64_data(v);
                  })
                .dtype(),
            kUInt32);
  EXPECT_EQ(typed(22,
                  [](onnx::TensorProto& t) {
                    for (int v : {0x2f, 0x08}) t.add_int32_data(v);
                  })
                .ints(),
            (Ints{-1, 2, -8}));
}

TEST(ImportData, SparseInitializersBecomeDense) {
  OnnxBuilder b;
  auto* sparse = b.graph().add_sparse_initializer();
  sparse->mutable_values()->set_name("w");
  sparse->mutable_values()->set_data_type(1);
  sparse->mutable_values()->add_dims(2);
  for (float v : {5.0f, 7.0f}) sparse->mutable_values()->add_float_data(v);
  sparse->mutable_indices()->set_data_type(7);
  sparse->mutable_indices()->add_dims(2);
  for (int v : {1, 5}) sparse->mutable_indices()->add_int64_data(v);
  for (int v : {2, 3}) sparse->add_dims(v);
  EXPECT_EQ(imported(b).ints(), (Ints{0, 5, 0, 0, 0, 7}));
  sparse->mutable_indices()->set_int64_data(1, 6);
  EXPECT_THROW(b.import_model(), UserError);
}

TEST(ImportData, ConstantNodesInAllForms) {
  OnnxBuilder b(13);
  set(b.node("Constant", {}, {"i"}), "value_int", int64_t{4});
  set(b.node("Constant", {}, {"f"}), "value_float", 0.5f);
  set(b.node("Constant", {}, {"is"}), "value_ints", Ints{4, 5});
  set(b.node("Constant", {}, {"fs"}), "value_floats", std::vector<float>{1, 2});
  auto& t = *attribute(b.node("Constant", {}, {"t"}), "value").mutable_t();
  t.set_data_type(7);
  t.add_int64_data(9);
  for (const char* name : {"i", "f", "is", "fs", "t"}) b.output(name);
  const ImportResult result = b.import_model();
  ASSERT_TRUE(result.ok()) << to_string(result.unsupported);
  const auto type = [&](size_t k) { return to_string(result.graph.type(result.graph.outputs[k])); };
  EXPECT_EQ(type(0), "i64[]");
  EXPECT_EQ(type(1), "f32[]");
  EXPECT_EQ(type(2), "i64[2]");
  EXPECT_EQ(type(3), "f32[2]");
  EXPECT_EQ(type(4), "i64[]");
  EXPECT_EQ(result.graph.constant(result.graph.outputs[4])->int_at(0), 9);
}

/// A folder with `model/` for the model and files around it.
class External : public ::testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directory(folder());
    write(folder() + "/w.bin", std::string("\0\0\0\0\0\0\x80\x3f\0\0\0\x40", 12));
    write(dir_.file("outside.bin"), std::string(8, '\0'));
  }
  std::string folder() const { return dir_.file("model"); }
  static void write(const std::string& path, const std::string& data) { std::ofstream(path, std::ios::binary) << data; }

  /// Id of the error, or "ok".
  std::string import_at(const std::string& location, const std::string& offset = "4", const std::string& length = "8") {
    OnnxBuilder b;
    auto& t = tensor(b, 1, {2});
    t.set_data_location(onnx::TensorProto::EXTERNAL);
    const auto entry = [&](const char* key, const std::string& value) {
      if (value.empty()) return;
      auto* e = t.add_external_data();
      e->set_key(key);
      e->set_value(value);
    };
    entry("location", location);
    entry("offset", offset);
    entry("length", length);
    b.output("w");
    try {
      const ImportResult result = b.import_model({}, folder());
      EXPECT_EQ(result.graph.constant(result.graph.outputs.at(0))->ints(), (Ints{1, 2}));
      return "ok";
    } catch (const UserError& error) {
      return error.id();
    }
  }

  TempDir dir_;
};

TEST_F(External, ReadsFilesOfTheFolder) {
  EXPECT_EQ(import_at("w.bin"), "ok");
  EXPECT_EQ(import_at("./w.bin"), "ok");
  EXPECT_EQ(import_at("w.bin", "4", ""), "ok");
  std::filesystem::create_directory(folder() + "/sub");
  std::filesystem::copy(folder() + "/w.bin", folder() + "/sub/w.bin");
  EXPECT_EQ(import_at("sub/w.bin"), "ok");
}

TEST_F(External, RefusesEverythingElse) {
  EXPECT_EQ(import_at("../outside.bin", "0"), "external-data-outside");
  EXPECT_EQ(import_at("sub/../../outside.bin", "0"), "external-data-outside");
  EXPECT_EQ(import_at(dir_.file("outside.bin"), "0"), "external-data-outside");
  EXPECT_EQ(import_at("..\\outside.bin", "0"), "external-data-outside");
  EXPECT_EQ(import_at(std::string("w.bin\0x", 7)), "external-data-outside");
  EXPECT_EQ(import_at("", "0"), "external-data-outside");
  ASSERT_EQ(symlink("../outside.bin", (folder() + "/link.bin").c_str()), 0);
  EXPECT_EQ(import_at("link.bin", "0"), "external-data-outside");
  ASSERT_EQ(symlink("..", (folder() + "/up").c_str()), 0);
  EXPECT_EQ(import_at("up/outside.bin", "0"), "external-data-outside");
  std::filesystem::create_hard_link(dir_.file("outside.bin"), folder() + "/hard.bin");
  EXPECT_EQ(import_at("hard.bin", "0"), "external-data-outside");
  EXPECT_EQ(import_at("sub", "0"), "external-data-missing");
  std::filesystem::create_directory(folder() + "/sub");
  EXPECT_EQ(import_at("sub", "0"), "external-data-outside");
  ASSERT_EQ(mkfifo((folder() + "/pipe").c_str(), 0600), 0);
  EXPECT_EQ(import_at("pipe", "0"), "external-data-outside");
  EXPECT_EQ(import_at("w.bin", "8"), "external-data-short");
  EXPECT_EQ(import_at("w.bin", "9223372036854775807"), "external-data-short");
  EXPECT_EQ(import_at("w.bin", "0", "12"), "bad-initializer");
  EXPECT_EQ(import_at("w.bin", "-4"), "bad-initializer");
  EXPECT_EQ(import_at("w.bin", "4x"), "bad-initializer");
}

/// A weight of 5,000 floats, which the importer reads past the parser.
std::string large_raw() {
  std::string raw;
  for (int k = 0; k < 5000; ++k) {
    const float value = static_cast<float>(k) / 8;
    raw.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  return raw;
}

ImportResult import_file(const TempDir& folder, const std::string& bytes) {
  EXPECT_TRUE(write_file(folder.file("m.onnx"), bytes).ok());
  return import_onnx(folder.file("m.onnx"));
}

TEST(ImportData, LargeWeightsOfAFile) {
  const TempDir folder;
  const std::string raw = large_raw();
  for (const std::string& name : {std::string("graph"), std::string("graph of another length")}) {  // moves the data
    OnnxBuilder b;
    b.graph().set_name(name);
    b.floats("small", {2}, {1, 2});
    tensor(b, 1, {50, 100}).set_raw_data(raw);
    auto* nibbles = b.graph().add_initializer();
    nibbles->set_name("nibbles");
    nibbles->set_data_type(22);
    nibbles->add_dims(40000);
    nibbles->set_raw_data(std::string(20000, '\x1f'));
    for (const char* output : {"small", "w", "nibbles"}) b.output(output);
    const std::string bytes = b.model().SerializeAsString();
    const ImportResult result = import_file(folder, bytes);
    ASSERT_TRUE(result.ok()) << to_string(result.unsupported);
    const Constant& w = *result.graph.constant(result.graph.outputs.at(1));
    EXPECT_EQ(w.shape(), (Ints{50, 100}));
    EXPECT_EQ(reinterpret_cast<uintptr_t>(w.data()) % 64, 0u);
    EXPECT_EQ(std::memcmp(w.data(), raw.data(), raw.size()), 0);
    EXPECT_EQ(result.graph.constant(result.graph.outputs.at(0))->float_at(1), 2);
    const Constant& small_ints = *result.graph.constant(result.graph.outputs.at(2));
    EXPECT_EQ(small_ints.int_at(0), -1);
    EXPECT_EQ(small_ints.int_at(1), 1);
    // What was read stays when the file goes.
    ASSERT_TRUE(write_file(folder.file("m.onnx"), "").ok());
    EXPECT_EQ(std::memcmp(w.data(), raw.data(), raw.size()), 0);
  }
}

TEST(ImportData, LargeWeightsOfAnUnusualFile) {
  const TempDir folder;
  const std::string raw = large_raw();
  OnnxBuilder b;
  tensor(b, 1, {5000}).set_raw_data(raw);
  b.output("w");
  const std::string whole = b.model().SerializeAsString();
  // Messages may come in pieces, and of a field that stands twice the last one counts.
  onnx::ModelProto first, second;
  second.mutable_graph()->add_initializer()->set_name("w2");
  second.mutable_graph()->mutable_initializer(0)->set_data_type(1);
  second.mutable_graph()->mutable_initializer(0)->add_dims(5000);
  second.mutable_graph()->mutable_initializer(0)->set_raw_data(std::string(raw.rbegin(), raw.rend()));
  second.mutable_graph()->add_output()->set_name("w2");
  const ImportResult two = import_file(folder, whole + second.SerializeAsString());
  ASSERT_TRUE(two.ok()) << to_string(two.unsupported);
  EXPECT_EQ(std::memcmp(two.graph.constant(two.graph.outputs.at(0))->data(), raw.data(), raw.size()), 0);
  EXPECT_EQ(static_cast<const char*>(two.graph.constant(two.graph.outputs.at(1))->data())[0], raw.back());

  OnnxBuilder twice;
  auto& w = tensor(twice, 1, {5000});
  onnx::TensorProto extra;
  extra.set_raw_data(raw);
  w.set_raw_data(std::string(raw.size(), 'x'));
  twice.output("w");
  std::string bytes = twice.model().SerializeAsString();
  // The tensor's message with a second field of raw data behind the first: graph and tensor grow by as much.
  const std::string inner = w.SerializeAsString(), field = extra.SerializeAsString();
  onnx::GraphProto without = twice.graph();
  without.clear_initializer();
  const auto prefixed = [](int number, const std::string& message) {
    std::string out(1, static_cast<char>(number << 3 | 2));
    for (size_t size = message.size();; size >>= 7) {
      out += static_cast<char>((size & 127) | (size > 127 ? 128 : 0));
      if (size <= 127) break;
    }
    return out + message;
  };
  onnx::ModelProto head = twice.model();
  head.clear_graph();
  bytes = head.SerializeAsString() + prefixed(7, without.SerializeAsString() + prefixed(5, inner + field));
  const ImportResult last = import_file(folder, bytes);
  ASSERT_TRUE(last.ok()) << to_string(last.unsupported);
  EXPECT_EQ(std::memcmp(last.graph.constant(last.graph.outputs.at(0))->data(), raw.data(), raw.size()), 0);

  for (size_t cut : {whole.size() / 2, whole.size() - 1}) {
    try {
      import_file(folder, whole.substr(0, cut));
      ADD_FAILURE() << "a model that is cut off was taken";
    } catch (const UserError& e) {
      EXPECT_STREQ(e.id().c_str(), "truncated-model");
    }
  }
  // A wrong size is told before anything is read.
  OnnxBuilder wrong;
  tensor(wrong, 1, {4999}).set_raw_data(raw);
  wrong.output("w");
  try {
    import_file(folder, wrong.model().SerializeAsString());
    ADD_FAILURE() << "too many bytes were taken";
  } catch (const UserError& e) {
    EXPECT_STREQ(e.id().c_str(), "bad-initializer");
  }
}

}  // namespace
}  // namespace tensmith::graph
