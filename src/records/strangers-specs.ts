// The collections whose records strangers can cause, with the bounds of each kind of record.
import { accountsOf, sessionUid, text } from './artifacts.ts';
import { boundOf, wholeCollection } from './bounds.ts';
import type { Bound, CollectionSpec } from './collection-spec.ts';
import type { DeliveryRecord } from './deliveries.ts';
import type { ArtifactRecord } from './engine.ts';
import type { LogEventRecord } from './log-events.ts';
import type { ChallengeRecord, FailureRecord } from './protection-state.ts';
import type { Stored } from './record.ts';

/** What waits for users who may never come. */
const WAITING = { max: 10_000, maxOfAddress: 600, maxLength: 40_000, whenFull: 'evict' } as const;

const ofModel =
  (model: string) =>
  (artifact: ArtifactRecord): string | undefined =>
    artifact.model === model ? model : undefined;

/** Waiting authorization requests, which anybody can create by a request to /authorize. */
const waitingRequests: Bound<ArtifactRecord> = {
  ...WAITING,
  kind: ofModel('Interaction'),
  // Its user has logged in or given a first factor.
  isBegun: ({ payload: { result, lastSubmission, session } }) =>
    result !== undefined || lastSubmission !== undefined || session !== undefined,
};

/** Pushed requests (RFC 9126). Of a server, which pushes those of all its users from one address, none is the oldest. */
const pushedRequests: Bound<ArtifactRecord> = {
  kind: ofModel('PushedAuthorizationRequest'),
  max: 100_000,
  maxLength: 100_000,
  whenFull: 'evict',
};

/** The `jti` of assertions and of DPoP proofs, for which anybody may make keys (RFC 9449 §11.1). */
const usedAssertions: Bound<ArtifactRecord> = {
  kind: ofModel('ReplayDetection'),
  max: 1_000_000,
  maxLength: 5_000,
  whenFull: 'refuse',
};

/** Logins at /authorize that something else than an application waits for, and those at an external provider. */
const waitingChallenges: Bound<ChallengeRecord> = {
  ...WAITING,
  kind: ({ purpose, isWaiting, spent }) => {
    if (isWaiting !== true) return undefined;
    // Those that have ended are kept for a while, and take no place of one that waits.
    return spent ? `${purpose} spent` : purpose;
  },
};

/** Codes, links and device codes; each purpose by itself. Servers request them for all their users from one address. */
const otherChallenges: Bound<ChallengeRecord> = {
  kind: ({ purpose }) => purpose,
  max: 50_000,
  maxLength: 40_000,
  whenFull: 'evict',
};

const ARTIFACTS = [waitingRequests, pushedRequests, usedAssertions] as const;
const CHALLENGES = [waitingChallenges, otherChallenges] as const;

export const artifactsSpec: CollectionSpec<ArtifactRecord> = {
  writtenFor: { strangers: ARTIFACTS, others: 'tokens and sessions of users and applications' },
  unique: {},
  indexes: {
    uid: (artifact) => (artifact.model === 'Session' ? text(artifact.payload.uid) : undefined),
    userCode: (artifact) => text(artifact.payload.userCode),
    kind: (artifact) => boundOf(ARTIFACTS, artifact)?.kind,
    grantId: (artifact) => text(artifact.payload.grantId),
    account: ({ payload }) => accountsOf(payload),
    session: ({ payload }) => sessionUid(payload),
  },
  named: {
    grantId: { collection: 'artifacts', prefix: 'Grant:' },
    account: { collection: 'users', prefix: '' },
  },
  hasRandomId: ({ model }) => model === 'AccessToken',
  sealed: [
    'payload.actions.assertion.settings.key',
    ...['result', 'lastSubmission', 'prompt.details'].map(
      (of) => `payload.${of}.actions.progress.outcome.login.assertion.settings.key`,
    ),
  ],
};

export const challengesSpec: CollectionSpec<ChallengeRecord> = {
  writtenFor: { strangers: CHALLENGES },
  unique: {},
  indexes: {
    user: (challenge) => challenge.user_id,
    subject: (challenge) => challenge.subject,
    kind: (challenge) => boundOf(CHALLENGES, challenge)?.kind,
    ticket: (challenge) => (challenge.salt === undefined ? challenge.secretHash : undefined),
  },
};

export const deliveriesSpec: CollectionSpec<DeliveryRecord> = {
  writtenFor: { strangers: [wholeCollection({ max: 100_000, maxLength: 100_000, whenFull: 'refuse' })] },
  unique: {},
  indexes: {},
  fields: { kind: 'text', dueAt: 'text' },
  indexed: ['dueAt'],
  sealed: ['content'],
};

export const failuresSpec: CollectionSpec<FailureRecord> = {
  writtenFor: { strangers: [wholeCollection({ max: 100_000, maxLength: 1_000, whenFull: 'refuse' })] },
  unique: {},
  indexes: { account: ({ account, typed = [] }) => [...(account === undefined ? [] : [account]), ...typed] },
};

export const samlMessagesSpec: CollectionSpec<Stored> = {
  writtenFor: { strangers: [wholeCollection({ max: 100_000, maxLength: 2_000, whenFull: 'refuse' })] },
  unique: {},
  indexes: {},
};

export const logsSpec: CollectionSpec<LogEventRecord> = {
  writtenFor: { rate: 'protection/event-budget.ts' },
  unique: {},
  indexes: {
    user: (event) => event.user_id,
    name: (event) => event.user_name,
    transaction: (event) => event.transaction,
  },
  fields: {
    type: 'text',
    date: 'text',
    description: 'text',
    client_id: 'text',
    connection: 'text',
    user_id: 'text',
    user_name: 'text',
    ip: 'text',
    transaction: 'text',
  },
  indexed: ['date', 'type'],
  indexedText: ['ip', 'client_id', 'connection'],
  hasRandomId: () => true,
};
