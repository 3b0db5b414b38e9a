/* SPDX-License-Identifier: Apache-2.0 */
/* File calls that fail when told to.
 *
 * Enters:  which call fails, after how many of its kind, how often.   Leaves: how often it did.
 * Units:   calls.                                                      Thread class: one thread at a time. */
#ifndef HORUS_TESTS_FAULTS_FAILING_FILES_H_
#define HORUS_TESTS_FAULTS_FAILING_FILES_H_

enum FileFault {
  kNoFault,
  kOpenInterrupted, /* EINTR */
  kOpenRefused,     /* EACCES */
  kOpenTooMany,     /* EMFILE */
  kReadInterrupted,
  kReadBroken, /* EIO */
  kReadEnds,   /* as if the file ended here */
  kReadShort,  /* one byte */
  kWriteInterrupted,
  kWriteFull, /* ENOSPC */
  kWriteBroken,
  kWriteNothing, /* 0 bytes, again and again */
  kWriteShort,
  kSyncInterrupted,
  kSyncBroken,
  kCloseInterrupted,
  kCloseFull,
  kRenameFull
};

void FailFiles(enum FileFault which, int calls_before, int times);
int FaultsMet(void);
int LowestWritten(void); /* descriptor since FailFiles; -1: none */

#endif /* HORUS_TESTS_FAULTS_FAILING_FILES_H_ */
