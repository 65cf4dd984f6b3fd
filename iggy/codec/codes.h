// Command codes: the `code` of every legacy request, and of the reads of vsr.
// Source: apache/iggy tag server-0.8.0, core/binary_protocol/src/codes.rs; 13, 14, 103, 104, 123, 606: released 0.11.0.
#pragma once

#include <cstdint>

namespace iggy::code {

inline constexpr std::uint32_t kPing = 1;
inline constexpr std::uint32_t kGetStats = 10;
inline constexpr std::uint32_t kGetClusterMetadata = 12;
inline constexpr std::uint32_t kDescribeOptions = 13;
inline constexpr std::uint32_t kAttachConsumerSession = 14;
inline constexpr std::uint32_t kGetMe = 20;
inline constexpr std::uint32_t kGetClient = 21;
inline constexpr std::uint32_t kGetClients = 22;
inline constexpr std::uint32_t kGetUser = 31;
inline constexpr std::uint32_t kGetUsers = 32;
inline constexpr std::uint32_t kCreateUser = 33;
inline constexpr std::uint32_t kDeleteUser = 34;
inline constexpr std::uint32_t kUpdateUser = 35;
inline constexpr std::uint32_t kUpdatePermissions = 36;
inline constexpr std::uint32_t kChangePassword = 37;
inline constexpr std::uint32_t kLoginUser = 38;
inline constexpr std::uint32_t kLogout = 39;
inline constexpr std::uint32_t kGetTokens = 41;
inline constexpr std::uint32_t kCreateToken = 42;
inline constexpr std::uint32_t kDeleteToken = 43;
inline constexpr std::uint32_t kLoginToken = 44;
inline constexpr std::uint32_t kPollMessages = 100;
inline constexpr std::uint32_t kSendMessages = 101;
inline constexpr std::uint32_t kFlushUnsaved = 102;
inline constexpr std::uint32_t kGetPollRouting = 103;
inline constexpr std::uint32_t kPollMessagesOnPrimary = 104;
inline constexpr std::uint32_t kGetConsumerOffset = 120;
inline constexpr std::uint32_t kStoreConsumerOffset = 121;
inline constexpr std::uint32_t kDeleteConsumerOffset = 122;
inline constexpr std::uint32_t kGetConsumerOffsetRouting = 123;
inline constexpr std::uint32_t kGetStream = 200;
inline constexpr std::uint32_t kGetStreams = 201;
inline constexpr std::uint32_t kCreateStream = 202;
inline constexpr std::uint32_t kDeleteStream = 203;
inline constexpr std::uint32_t kUpdateStream = 204;
inline constexpr std::uint32_t kPurgeStream = 205;
inline constexpr std::uint32_t kGetTopic = 300;
inline constexpr std::uint32_t kGetTopics = 301;
inline constexpr std::uint32_t kCreateTopic = 302;
inline constexpr std::uint32_t kDeleteTopic = 303;
inline constexpr std::uint32_t kUpdateTopic = 304;
inline constexpr std::uint32_t kPurgeTopic = 305;
inline constexpr std::uint32_t kCreatePartitions = 402;
inline constexpr std::uint32_t kDeletePartitions = 403;
inline constexpr std::uint32_t kDeleteSegments = 503;
inline constexpr std::uint32_t kGetGroup = 600;
inline constexpr std::uint32_t kGetGroups = 601;
inline constexpr std::uint32_t kCreateGroup = 602;
inline constexpr std::uint32_t kDeleteGroup = 603;
inline constexpr std::uint32_t kJoinGroup = 604;
inline constexpr std::uint32_t kLeaveGroup = 605;
inline constexpr std::uint32_t kSyncGroup = 606;

}  // namespace iggy::code
