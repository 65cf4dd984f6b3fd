// Goal: what breaks a rule is refused with the right status, and text is UTF-8. Layouts themselves are in
// legacy_test.cc.
#include "iggy/codec/primitives.h"

#include <gtest/gtest.h>

#include "iggy/codec/golden.h"

namespace iggy {
namespace {

template <class Read>
std::uint32_t status_of(std::string_view hex, Read read) {
  const base::Bytes bytes = golden::from_hex(hex);
  WireReader reader(bytes);
  read(reader);
  return reader.status();
}

TEST(Primitives, StatusesFollowTheServersOrder) {
  const auto ident = [](std::string_view hex) { return status_of(hex, [](WireReader& reader) { reader.ident(); }); };
  EXPECT_EQ(ident("010401000000"), 0U);
  EXPECT_EQ(ident("0103010000"), 4U);    // a number has four bytes
  EXPECT_EQ(ident("01030100"), 3U);      // but they must be there first
  EXPECT_EQ(ident("090461626364"), 3U);  // no such kind
  EXPECT_EQ(ident("0200"), 4U);
  EXPECT_EQ(ident("02"), 3U);
  EXPECT_EQ(ident("0201ff"), 3U);  // no UTF-8
  const auto name = [](std::string_view hex) { return status_of(hex, [](WireReader& reader) { reader.name(); }); };
  EXPECT_EQ(name("0161"), 0U);
  EXPECT_EQ(name("00"), 4U);
  EXPECT_EQ(name("0261"), 3U);
  EXPECT_EQ(name(""), 3U);
  const auto strategy = [](std::string_view hex) { return status_of(hex, [](WireReader& r) { r.strategy(); }); };
  EXPECT_EQ(strategy("050000000000000000"), 0U);
  EXPECT_EQ(strategy("060000000000000000"), 3U);
  const auto consumer = [](std::string_view hex) { return status_of(hex, [](WireReader& r) { r.consumer(); }); };
  EXPECT_EQ(consumer("02020167"), 0U);
  EXPECT_EQ(consumer("03020167"), 3U);
}

TEST(Primitives, TheFirstBrokenRuleCounts) {
  const base::Bytes bytes = golden::from_hex("0000");
  WireReader reader(bytes);
  reader.name();
  reader.u64();
  reader.refuse(kStatusInvalidCommand);
  EXPECT_EQ(reader.status(), kStatusInvalidFormat);
}

TEST(Primitives, OnlyFlagOneIsAPartition) {
  for (const auto& [hex, expected] : std::vector<std::pair<std::string, std::optional<std::uint32_t>>>{
           {"0107000000", 7}, {"0007000000", std::nullopt}, {"0207000000", std::nullopt}}) {
    const base::Bytes bytes = golden::from_hex(hex);
    WireReader reader(bytes);
    EXPECT_EQ(reader.optional_partition(), expected);
    EXPECT_TRUE(reader.at_end());
  }
}

TEST(Primitives, Utf8IsWhatUnicodeSaysItIs) {
  const auto valid = [](std::string_view hex) { return is_utf8(golden::from_hex(hex)); };
  for (const auto* good :
       {"", "00", "7f", "c280", "dfbf", "e0a080", "ed9fbf", "ee8080", "efbfbf", "f0908080", "f48fbfbf"})
    EXPECT_TRUE(valid(good)) << good;
  for (const auto* bad : {"80", "c080", "c1bf", "c2", "c220", "e08080", "e09fbf", "eda080", "edbfbf", "e282",
                          "f0808080", "f08fbfbf", "f4908080", "f5808080", "f09080", "ff"})
    EXPECT_FALSE(valid(bad)) << bad;
}

TEST(Primitives, OptionBlocksAreChecked) {
  const std::vector<Option> options = {{"durability", 2, golden::from_hex("7065")}, {"x", 12, base::Bytes(8)}};
  base::Bytes block;
  WireWriter writer(block);
  writer.options(options);
  ASSERT_TRUE(writer.status());
  WireReader reader(block);
  EXPECT_EQ(reader.options(block.size()), options);
  EXPECT_TRUE(reader.ok() && reader.at_end());

  const auto refused = [](base::Bytes bytes) {
    WireReader other(bytes);
    other.options(bytes.size());
    return !other.ok();
  };
  EXPECT_FALSE(refused({}));
  for (std::size_t size = 1; size < block.size(); ++size) {
    const bool whole = size == 5 + 10 + 5 + 2;  // the first pair
    EXPECT_EQ(refused({block.begin(), block.begin() + static_cast<std::ptrdiff_t>(size)}), !whole) << size;
  }
  EXPECT_TRUE(refused(golden::from_hex("01010000006102010000006b")));  // key is no string
  EXPECT_TRUE(refused(golden::from_hex("02010000006100010000006b")));  // value kind 0
  EXPECT_TRUE(
      refused(golden::from_hex("0200000000"
                               "02010000006b")));  // empty key
  base::Bytes twice = golden::from_hex("02010000006102010000006b");
  twice.insert(twice.end(), twice.begin(), twice.begin() + 12);
  EXPECT_TRUE(refused(twice));
}

TEST(Primitives, WriterNamesTheFirstValueWithoutAnEncoding) {
  base::Bytes out;
  WireWriter writer(out);
  writer.name("ok", "stream name");
  EXPECT_TRUE(writer.status());
  writer.ident(std::string(300, 'x'), "topic");
  writer.name("", "group name");
  ASSERT_FALSE(writer.status());
  EXPECT_EQ(writer.status().error().code(), base::ErrorCode::kInvalidArgument);
  EXPECT_EQ(writer.status().error().object(), "topic");
}

}  // namespace
}  // namespace iggy
