// What actions may ask for: the methods of `api` by trigger, and the effect of each recorded call.
// docs/understand/decisions/actions-scripts.md#actions-record-what-they-request-and-the-server-does-it
import { z } from 'zod';
import { isLoopback } from '../../http/loopback.ts';
import { hasUserInfo } from '../../http/outbound/outbound.ts';
import type { Trigger } from '../../records/tenant/actions.ts';
import {
  type ApiMethod,
  apiMethod,
  memberName,
  nameAndValue,
  scopeToken,
  setMember,
  text,
} from './api-method.ts';
import { ASSERTION_METHODS, type AssertionChanges, noAssertionChanges } from './assertion-methods.ts';
import { EXCHANGE_METHODS, type ExchangeOutcome } from './exchange-methods.ts';
import { FACTOR_METHODS, type RequiredFactors } from './factor-methods.ts';
import { noSessionChanges, SESSION_METHODS, type SessionChanges } from './session-methods.ts';

// What actions of `post-login` may ask for in addition to those of other triggers: redirects, second factors, scopes,
// and changes of the session and its tokens.

/** What the actions of a login asked for together, in addition to the members of every outcome. */
interface LoginChanges {
  /** Where the user is sent before anything else happens. */
  redirect?: string;
  /** Where the browser goes after a password reset. */
  resultUrl?: string;
  /** A second factor, before the next action runs. */
  factors?: RequiredFactors;
  /** Whether every action that asked for a second factor accepts a remembered browser instead. */
  mayRemember?: boolean;
  /** The id of the user to log in: the one whose linked identity was logged in with. */
  primaryUser?: string;
  assertion: AssertionChanges;
  /** Completed custom authentication methods, as URIs. */
  methods: string[];
  /** Scopes of the access token: true adds one, false removes one. */
  scopes: Record<string, boolean>;
  session: SessionChanges;
  refreshToken: SessionChanges;
  /** The members of `event.transaction.metadata` for later actions of the same login. */
  transaction: Record<string, string | number | boolean>;
}

/** Returns the empty request. */
function noLoginChanges(): LoginChanges {
  return {
    methods: [],
    scopes: {},
    session: noSessionChanges(),
    refreshToken: noSessionChanges(),
    assertion: noAssertionChanges(),
    transaction: {},
  };
}

/** An outcome with the requests of a login. */
interface WithLoginChanges {
  denied?: { reason: string };
  multifactor: boolean;
  login: LoginChanges;
}

/** Longest address that a user is sent to, characters. */
const MAX_ADDRESS_LENGTH = 8_000;
/** Limits: entries of a transaction's metadata, characters of a value, custom methods. */
const MAX = { entries: 25, value: 1_024, methods: 20 };

const address = z.string().max(MAX_ADDRESS_LENGTH);

/**
 * Parses the address of a page. Plain `http:` is accepted for this machine only, because the state in the query must
 * not be readable on the network.
 */
function pageAddress(args: string): URL | undefined {
  const url = URL.parse(args);
  if (url === null || hasUserInfo(args)) return undefined;
  const isSecure = url.protocol === 'https:' || (url.protocol === 'http:' && isLoopback(url.hostname));
  return isSecure ? url : undefined;
}

const scalar = z.union([z.string().max(MAX.value), z.number(), z.boolean()]);
const redirectOptions = z.object({ query: z.record(z.string(), scalar.nullable()).nullish() }).nullish();

/** Takes `(url, { query })`. */
const setPageAddress =
  (set: (login: LoginChanges, url: string) => void): ApiMethod<WithLoginChanges> =>
  (outcome, args) => {
    const parsed = z.tuple([address, redirectOptions.optional()]).rest(z.unknown()).safeParse(args);
    const url = parsed.success ? pageAddress(parsed.data[0]) : undefined;
    if (url === undefined || !parsed.success) return false;
    const given = Object.entries(parsed.data[1]?.query ?? {}).filter(([, value]) => value !== null);
    const added = new URLSearchParams(Object.fromEntries(given.map(([key, value]) => [key, String(value)])));
    // What the address has already keeps its spelling: it may be signed.
    url.search = [url.search.slice(1), String(added)].filter((one) => one !== '').join('&');
    if (url.href.length > MAX_ADDRESS_LENGTH) return false;
    set(outcome.login, url.href);
    return true;
  };

const recordMethod: ApiMethod<WithLoginChanges> = ({ login }, args) => {
  const [uri] = z.tuple([address]).rest(z.unknown()).safeParse(args).data ?? [];
  const { protocol } = URL.parse(uri ?? '') ?? {};
  if (uri === undefined || (protocol !== 'https:' && protocol !== 'http:')) return false;
  if (login.methods.length >= MAX.methods) return false;
  login.methods = [...new Set([...login.methods, uri])];
  return true;
};

const setTransactionMetadata: ApiMethod<WithLoginChanges> = ({ login }, args) => {
  const parsed = z.tuple([memberName, scalar.nullable()]).rest(z.unknown()).safeParse(args);
  if (!parsed.success) return false;
  const [key, value] = parsed.data;
  if (value === null) delete login.transaction[key];
  else if (Object.hasOwn(login.transaction, key) || Object.keys(login.transaction).length < MAX.entries)
    setMember(login.transaction, key, value);
  else return false;
  return true;
};

/** Only once in a login. */
const setPrimaryUser: ApiMethod<WithLoginChanges> = ({ login }, args) => {
  const parsed = z.tuple([memberName]).rest(z.unknown()).safeParse(args);
  if (!parsed.success || login.primaryUser !== undefined) return false;
  login.primaryUser = parsed.data[0];
  return true;
};

const scopeArgument = z.tuple([scopeToken]).rest(z.unknown());

const setScope =
  (isAdded: boolean): ApiMethod<WithLoginChanges> =>
  ({ login }, args) => {
    const parsed = scopeArgument.safeParse(args);
    if (parsed.success) setMember(login.scopes, parsed.data[0], isAdded);
    return parsed.success;
  };

/** The methods of `post-login`, by name. */
const LOGIN_METHODS: Record<string, ApiMethod<WithLoginChanges>> = {
  ...SESSION_METHODS,
  ...ASSERTION_METHODS,
  ...FACTOR_METHODS,
  'authentication.setPrimaryUser': setPrimaryUser,
  'accessToken.addScope': setScope(true),
  'accessToken.removeScope': setScope(false),
  'redirect.sendUserTo': setPageAddress((login, url) => {
    login.redirect = url;
  }),
  'authentication.recordMethod': recordMethod,
  'transaction.setMetadata': setTransactionMetadata,
};

/** Methods that an action has only when it continues after its redirect. */
const CONTINUING_METHODS: ReadonlySet<string> = new Set(['authentication.recordMethod']);

const RESET_METHODS = {
  'authentication.challengeWith': FACTOR_METHODS['authentication.challengeWith'],
  'authentication.challengeWithAny': FACTOR_METHODS['authentication.challengeWithAny'],
  'transaction.setResultUrl': setPageAddress((login, url) => {
    login.resultUrl = url;
  }),
} satisfies Record<string, ApiMethod<WithLoginChanges>>;

// What actions that deliver messages may report about one that was not delivered.

interface NotificationFailure {
  /** Whether the message is dropped; otherwise it is tried again. */
  isFinal: boolean;
  /** For the log, of any length. */
  reason: string;
}

interface WithNotificationFailure {
  notification?: NotificationFailure;
}

const reasonArguments = z.tuple([z.string()]).rest(z.unknown());

/** The last call counts. */
const fails = (isFinal: boolean) =>
  apiMethod<WithNotificationFailure, typeof reasonArguments>(reasonArguments, (outcome, [reason]) => {
    outcome.notification = { isFinal, reason };
  });

const NOTIFICATION_METHODS = {
  'notification.drop': fails(true),
  'notification.retry': fails(false),
} satisfies Record<string, ApiMethod<WithNotificationFailure>>;

/** What all actions of a trigger asked for together. */
export interface ActionOutcome {
  /** Why access is denied. No further action ran. `error` is set where it is not `access_denied`. */
  denied?: { code?: string; reason: string; userMessage?: string; error?: 'unauthorized' };
  /** Claims, by name. The caller refuses those of the protocol. */
  idToken: Record<string, unknown>;
  accessToken: Record<string, unknown>;
  /** Members of the metadata; null removes one. */
  userMetadata: Record<string, unknown>;
  appMetadata: Record<string, unknown>;
  /** Whether a second factor is required. */
  multifactor: boolean;
  /** The scopes that the token of an application is to have, as far as the client may have them. */
  targetScopes?: string[];
  login: LoginChanges;
  exchange: ExchangeOutcome;
  /** Set where the message was not delivered. */
  notification?: NotificationFailure;
}

export function emptyOutcome(): ActionOutcome {
  return {
    idToken: {},
    accessToken: {},
    userMetadata: {},
    appMetadata: {},
    multifactor: false,
    login: noLoginChanges(),
    exchange: { users: [] },
  };
}

const METADATA = ['user.setUserMetadata', 'user.setAppMetadata'] as const;

/** The sandbox records a call of any of these as a call of the first, with all scopes that result from it. */
const TARGET_SCOPES = [
  'transaction.setTargetScopes',
  'transaction.addTargetScope',
  'transaction.removeTargetScope',
  'transaction.clearTargetScopes',
] as const;

/** The methods of `api`, by trigger. `cache` is available to all. */
export const TRIGGER_METHODS: Record<Trigger, readonly string[]> = {
  'post-login': [
    'access.deny',
    'idToken.setCustomClaim',
    'accessToken.setCustomClaim',
    'multifactor.enable',
    'validation.error',
    ...METADATA,
    ...TARGET_SCOPES,
    ...Object.keys(LOGIN_METHODS),
  ],
  'credentials-exchange': ['access.deny', 'accessToken.setCustomClaim', ...TARGET_SCOPES],
  'pre-user-registration': ['access.deny', 'validation.error', ...METADATA],
  'post-user-registration': [],
  'post-change-password': [],
  'send-phone-message': [],
  'custom-phone-provider': Object.keys(NOTIFICATION_METHODS),
  'custom-email-provider': Object.keys(NOTIFICATION_METHODS),
  'password-reset-post-challenge': [
    'access.deny',
    'redirect.sendUserTo',
    'transaction.setMetadata',
    ...(Object.keys(RESET_METHODS) as (keyof typeof RESET_METHODS)[]),
  ],
  'custom-token-exchange': [
    'access.deny',
    ...METADATA,
    ...(Object.keys(EXCHANGE_METHODS) as (keyof typeof EXCHANGE_METHODS)[]),
  ],
};

/** Returns the methods that an action has; `isContinued`: it continues after its redirect. */
export const methodsOf = (trigger: Trigger, isContinued: boolean): readonly string[] =>
  TRIGGER_METHODS[trigger].filter((method) => isContinued || !CONTINUING_METHODS.has(method));

/** Every list of methods that an action may have, in the form that the sandbox gets it. */
export const METHOD_LISTS: readonly string[] = [
  ...new Set(
    (Object.keys(TRIGGER_METHODS) as Trigger[]).flatMap((trigger) =>
      [false, true].map((isContinued) => methodsOf(trigger, isContinued).join(' ')),
    ),
  ),
];

const setMemberOf = (of: 'idToken' | 'accessToken' | 'userMetadata' | 'appMetadata') =>
  apiMethod<ActionOutcome, typeof nameAndValue>(nameAndValue, (outcome, [key, value]) =>
    setMember(outcome[of], key, value),
  );

const denyArguments = z.tuple([text]).rest(z.unknown());
const anyArguments = z.array(z.unknown());
const scopeArguments = z.tuple([z.array(scopeToken).max(1000)]).rest(z.unknown());

/** The effect of each method; it returns false for wrong arguments. */
const METHOD_EFFECTS: Record<string, ApiMethod<ActionOutcome>> = {
  ...LOGIN_METHODS,
  ...RESET_METHODS,
  ...EXCHANGE_METHODS,
  ...NOTIFICATION_METHODS,
  // `deny(reason)`, or `deny(code, message)` where the user is shown the message.
  'access.deny': apiMethod<ActionOutcome, typeof denyArguments>(denyArguments, (outcome, [first, second]) => {
    outcome.denied ??=
      typeof second === 'string'
        ? { code: first, reason: second.slice(0, 1000), userMessage: second.slice(0, 1000) }
        : { reason: first };
  }),
  'validation.error': apiMethod(z.tuple([text, text]).rest(z.unknown()), (outcome, [code, userMessage]) => {
    outcome.denied ??= { code, reason: userMessage, userMessage };
  }),
  'transaction.setTargetScopes': apiMethod<ActionOutcome, typeof scopeArguments>(
    scopeArguments,
    (outcome, [scopes]) => {
      outcome.targetScopes = scopes;
    },
  ),
  'idToken.setCustomClaim': setMemberOf('idToken'),
  'accessToken.setCustomClaim': setMemberOf('accessToken'),
  'user.setUserMetadata': setMemberOf('userMetadata'),
  'user.setAppMetadata': setMemberOf('appMetadata'),
  'multifactor.enable': apiMethod<ActionOutcome, typeof anyArguments>(
    anyArguments,
    (outcome, [factor, options]) => {
      if (factor === 'none') return;
      const { allowRememberBrowser } = (options ?? {}) as { allowRememberBrowser?: unknown };
      const mayRemember = allowRememberBrowser === true;
      outcome.login.mayRemember = mayRemember && (!outcome.multifactor || outcome.login.mayRemember === true);
      outcome.multifactor = true;
    },
  ),
};

/** How many calls an action may record. */
const MAX_COMMANDS = 1000;

/** Calls as the sandbox recorded them; nothing about them is trusted. */
export const commandsSchema = z
  .array(z.object({ method: z.string(), args: z.array(z.unknown()) }))
  .max(MAX_COMMANDS);

export type Command = z.output<typeof commandsSchema>[number];

/**
 * Methods that must not be ignored when they are called with wrong arguments, because access would be wider than
 * intended. The action fails instead.
 */
const MUST_BE_VALID: ReadonlySet<string> = new Set([
  'access.deny',
  'validation.error',
  'multifactor.enable',
  'redirect.sendUserTo',
  'accessToken.removeScope',
  ...TARGET_SCOPES,
  ...['session', 'refreshToken'].flatMap((of) => [
    `${of}.revoke`,
    `${of}.setExpiresAt`,
    `${of}.setIdleExpiresAt`,
  ]),
  'session.setCookieMode',
  // The user of the token must be exactly the one that the action names.
  ...Object.keys(EXCHANGE_METHODS),
  'authentication.setPrimaryUser',
  ...Object.keys(FACTOR_METHODS),
  ...Object.keys(ASSERTION_METHODS),
  // Otherwise a message that was not delivered would count as delivered.
  ...Object.keys(NOTIFICATION_METHODS),
]);

/**
 * Methods after whose calls the sandbox may run the next action at once: they change neither its event nor whether
 * it runs, and calls with wrong arguments are ignored. An action with more than `most` calls fails.
 */
export const CONTINUE_CONDITION = {
  methods: ['idToken.setCustomClaim', 'accessToken.setCustomClaim', 'accessToken.addScope'],
  most: MAX_COMMANDS,
};

/**
 * Applies a recorded call to the outcome.
 * @param methods the methods that the action has.
 * @returns false for another method and for wrong arguments; `failed` where that must not be ignored.
 */
export function applyCommand(
  methods: readonly string[],
  outcome: ActionOutcome,
  { method, args }: Command,
): boolean | 'failed' {
  const isApplied = methods.includes(method) && METHOD_EFFECTS[method]?.(outcome, args) === true;
  return isApplied || (MUST_BE_VALID.has(method) ? 'failed' : false);
}
