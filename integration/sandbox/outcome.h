// What a broker operation returns: a value, or the status that the client is told.
#pragma once

#include <cstdint>
#include <expected>

namespace sandbox {

template <class T>
using Outcome = std::expected<T, std::uint32_t>;

// Statuses that the broker itself gives; both dialects share the numbers.
namespace status {
inline constexpr std::uint32_t kInvalidCommand = 3;
inline constexpr std::uint32_t kFeatureUnavailable = 5;
inline constexpr std::uint32_t kDisconnected = 8;
inline constexpr std::uint32_t kNotFound = 20;
inline constexpr std::uint32_t kUnauthenticated = 40;
inline constexpr std::uint32_t kUnauthorized = 41;
inline constexpr std::uint32_t kInvalidCredentials = 42;
inline constexpr std::uint32_t kInvalidUsername = 43;
inline constexpr std::uint32_t kInvalidPassword = 44;
inline constexpr std::uint32_t kUserExists = 46;
inline constexpr std::uint32_t kUserInactive = 47;
inline constexpr std::uint32_t kCannotDeleteUser = 48;
inline constexpr std::uint32_t kTokenName = 50;
inline constexpr std::uint32_t kTokenExists = 51;
inline constexpr std::uint32_t kTokenExpired = 54;
inline constexpr std::uint32_t kNotAccepted = 58;
inline constexpr std::uint32_t kInvalidClientId = 101;
inline constexpr std::uint32_t kStreamNotFound = 1009;
inline constexpr std::uint32_t kStreamExists = 1012;
inline constexpr std::uint32_t kTopicSize = 1019;
inline constexpr std::uint32_t kTopicNotFound = 2010;
inline constexpr std::uint32_t kTopicExists = 2013;
inline constexpr std::uint32_t kTooManyPartitions = 2015;
inline constexpr std::uint32_t kPartitionsCount = 2019;
inline constexpr std::uint32_t kPartitionNotFound = 3007;
inline constexpr std::uint32_t kOffsetNotStored = 3021;
inline constexpr std::uint32_t kNotResolvedConsumer = 3022;
inline constexpr std::uint32_t kOptionKey = 4041;
inline constexpr std::uint32_t kOptionValue = 4042;
inline constexpr std::uint32_t kInvalidOffset = 4100;
inline constexpr std::uint32_t kGroupNotFound = 5000;
inline constexpr std::uint32_t kGroupExists = 5004;
inline constexpr std::uint32_t kNotMember = 5006;
inline constexpr std::uint32_t kWriteFailed = 10006;
}  // namespace status

inline std::unexpected<std::uint32_t> refuse(std::uint32_t code) { return std::unexpected(code); }

}  // namespace sandbox
