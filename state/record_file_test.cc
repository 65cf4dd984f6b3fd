// Goal: an exported message is read back bit by bit, nothing damaged is believed, and nobody else can read it. Method:
// write, read, damage every byte.
#include "state/record_file.h"

#include <filesystem>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "base/digest.h"
#include "state/testing/temp_folder.h"

namespace state {
namespace {

base::Record record(const std::string& body, std::uint32_t payload) {
  base::Record made;
  made.offset = 17;
  made.id = {5, 0xffULL << 56U};
  made.timestamp = 1000;
  made.origin_timestamp = 999;
  made.payload_length = payload;
  made.body = base::as_bytes(body);
  return made;
}
const base::PartitionKey kKey{{"orders/eu", "..%x"}, 3};

TEST(RecordFile, IsReadBackAsItWas) {
  const testing::TempFolder folder;
  const std::string body("pay\0load\nheaders", 16);
  const auto path = save_record(folder.file("left-out"), kKey, record(body, 9));
  ASSERT_TRUE(path) << path.error().to_string();
  EXPECT_TRUE(path->starts_with(folder.file("left-out/orders%2feu/%2e.%25x/3/17-"))) << *path;
  const auto again = save_record(folder.file("left-out"), kKey, record(body, 9));
  ASSERT_TRUE(again);
  EXPECT_EQ(*again, *path);
  const auto read = load_record(*path);
  ASSERT_TRUE(read) << read.error().to_string();
  const base::Record& back = read->records.at(0);
  EXPECT_EQ(back.offset, 17U);
  EXPECT_EQ(back.timestamp, 1000U);
  EXPECT_EQ(base::as_text(back.payload()), body.substr(0, 9));
  EXPECT_EQ(base::as_text(back.headers()), body.substr(9));
  EXPECT_EQ(base::digest_of(back), base::digest_of(record(body, 9)));
  for (std::filesystem::path at = *path; at != folder.file("left-out"); at = at.parent_path()) {
    struct stat status{};
    ASSERT_EQ(::stat(at.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 077, 0U) << at;
  }
}

TEST(RecordFile, AnotherMessageAtTheSameOffsetKeepsItsOwnFile) {
  const testing::TempFolder folder;
  const auto one = save_record(folder.file("d"), kKey, record("one", 3));
  const auto two = save_record(folder.file("d"), kKey, record("two", 3));
  ASSERT_TRUE(one && two);
  EXPECT_NE(*one, *two);
  EXPECT_TRUE(load_record(*one));
}

TEST(RecordFile, ALongNameIsCutAndKeptApart) {
  const testing::TempFolder folder;
  const std::string name(255, '/');
  const auto one = save_record(folder.file("d"), {{name, "t"}, 0}, record("x", 1));
  const auto two = save_record(folder.file("d"), {{name.substr(1) + "a", "t"}, 0}, record("x", 1));
  ASSERT_TRUE(one && two);
  EXPECT_NE(*one, *two);
}

TEST(RecordFile, NothingDamagedIsBelieved) {
  const testing::TempFolder folder;
  const auto path = save_record(folder.file("d"), kKey, record("payload", 7));
  ASSERT_TRUE(path);
  std::ifstream file(*path, std::ios::binary);
  std::stringstream whole;
  whole << file.rdbuf();
  const std::string good = whole.str();
  const auto read_changed = [&](const std::string& bytes) {
    std::ofstream(*path, std::ios::binary | std::ios::trunc) << bytes;
    return load_record(*path);
  };
  for (std::size_t length = 0; length < good.size(); ++length) EXPECT_FALSE(read_changed(good.substr(0, length)));
  EXPECT_FALSE(read_changed(good + "x"));
  const std::size_t body = good.find("\n\n") + 2;
  for (std::size_t at = body; at < good.size(); ++at) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 1);
    EXPECT_FALSE(read_changed(bad));
  }
  EXPECT_TRUE(read_changed(good));
  EXPECT_EQ(load_record(folder.file("none")).error().code(), base::ErrorCode::kNotFound);
}

TEST(RecordFile, AFolderThatCantBeMadeIsSaid) {
  const testing::TempFolder folder;
  const auto path = save_record(folder.file("no/such"), kKey, record("x", 1));
  ASSERT_FALSE(path);
  EXPECT_EQ(path.error().code(), base::ErrorCode::kStateUnavailable);
}

}  // namespace
}  // namespace state
