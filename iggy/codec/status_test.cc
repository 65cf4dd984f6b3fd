#include "iggy/codec/status.h"

#include <map>
#include <set>

#include <gtest/gtest.h>

namespace iggy {
namespace {

using enum base::ErrorCode;

TEST(Status, EveryEntryBecomesItsError) {
  std::uint32_t last = 0;
  std::set<std::string_view> names;
  for (const StatusEntry& entry : status_table()) {
    EXPECT_GT(entry.status, last);
    last = entry.status;
    EXPECT_TRUE(names.insert(entry.name).second) << entry.name;
    EXPECT_EQ(name_of_status(entry.status), entry.name);
    const base::Error error = error_of_status(entry.status, "create_topic");
    EXPECT_EQ(error.code(), entry.code) << entry.name;
    EXPECT_EQ(error.wire_status(), entry.status);
    EXPECT_EQ(error.message(), entry.name);
    EXPECT_EQ(error.operation(), "create_topic");
    EXPECT_EQ(error.retry(), base::default_retry(entry.code));
  }
}

TEST(Status, WhatTheReplicatorActsOn) {
  const std::map<std::uint32_t, base::ErrorCode> expected = {
      {41, kPermission},      {42, kCredentials},     {53, kCredentials},       {54, kCredentials},
      {40, kConnectionLost},  {30, kConnectionLost},  {14001, kConnectionLost}, {1009, kNotFound},
      {1010, kNotFound},      {2010, kNotFound},      {2011, kNotFound},        {3007, kNotFound},
      {20, kNotFound},        {5000, kNotFound},      {1012, kAlreadyExists},   {2013, kAlreadyExists},
      {5004, kAlreadyExists}, {57, kUncertain},       {58, kNotAccepted},       {5, kUnsupported},
      {14003, kUnsupported},  {8, kUncertain},        {31, kUncertain},         {11001, kUncertain},
      {4007, kUncertain},     {13000, kUncertain},    {4017, kInvalidRecord},   {4022, kInvalidRecord},
      {4041, kServerRefused}, {4100, kServerRefused},
  };
  for (const auto& [status, code] : expected) EXPECT_EQ(error_of_status(status, "x").code(), code) << status;
  for (std::uint32_t status = 10002; status <= 10009; ++status)
    EXPECT_EQ(error_of_status(status, "send_messages").code(), kUncertain) << status;
}

TEST(Status, UnknownOnesKeepTheirNumber) {
  const base::Error error = error_of_status(4'000'000'000U, "poll_messages");
  EXPECT_EQ(error.code(), kServerRefused);
  EXPECT_EQ(error.wire_status(), 4'000'000'000U);
  EXPECT_EQ(error.retry(), base::Retry::kFromWatermark) << "a send may have been carried out";
  EXPECT_EQ(error.to_string(), "poll_messages: unknown_status (status 4000000000)");
}

}  // namespace
}  // namespace iggy
