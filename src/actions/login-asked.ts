// What actions of `post-login` may ask for in addition to those of other triggers: redirects, second factors, scopes,
// and changes of the session and its tokens.
import { z } from 'zod';
import { isLoopback } from '../http/loopback.ts';
import { hasUserInfo } from '../http/outbound-rules.ts';
import { ASSERTION_TAKE, type AssertionAsked, nothingOfAssertion } from './assertion-asked.ts';
import { FACTORS_TAKE, type FactorsAsked } from './factors-asked.ts';
import { KEPT_TAKE, type KeptAsked, nothingKept } from './kept-asked.ts';
import { name, scopeToken, setMember, type Take } from './taking.ts';

/** What the actions of a login asked for together, in addition to the members of every outcome. */
export interface LoginAsked {
  /** Where the user is sent before anything else happens. */
  redirect?: string;
  /** Where the browser goes after a password reset. */
  resultUrl?: string;
  /** A second factor, before the next action runs. */
  factors?: FactorsAsked;
  /** Whether every action that asked for a second factor accepts a remembered browser instead. */
  mayRemember?: boolean;
  /** The id of the user to log in: the one whose linked identity was logged in with. */
  primaryUser?: string;
  assertion: AssertionAsked;
  /** Completed custom authentication methods, as URIs. */
  methods: string[];
  /** Scopes of the access token: true adds one, false removes one. */
  scopes: Record<string, boolean>;
  session: KeptAsked;
  refreshToken: KeptAsked;
  /** The members of `event.transaction.metadata` for later actions of the same login. */
  transaction: Record<string, string | number | boolean>;
}

/** Returns the empty request. */
export function nothingOfLogin(): LoginAsked {
  return {
    methods: [],
    scopes: {},
    session: nothingKept(),
    refreshToken: nothingKept(),
    assertion: nothingOfAssertion(),
    transaction: {},
  };
}

/** An outcome with the requests of a login. */
interface WithLogin {
  denied?: { reason: string };
  multifactor: boolean;
  login: LoginAsked;
}

/** Longest address that a user is sent to, characters. */
const LONGEST_ADDRESS = 8_000;
/** Limits: entries of a transaction's metadata, characters of a value, custom methods. */
const MOST = { entries: 25, value: 1_024, methods: 20 };

const address = z.string().max(LONGEST_ADDRESS);

/**
 * Parses the address of a page. Plain `http:` is accepted for this machine only, because the state in the query must
 * not be readable on the network.
 */
function pageAddress(given: string): URL | undefined {
  const url = URL.parse(given);
  if (url === null || hasUserInfo(given)) return undefined;
  const isSecure = url.protocol === 'https:' || (url.protocol === 'http:' && isLoopback(url.hostname));
  return isSecure ? url : undefined;
}

const scalar = z.union([z.string().max(MOST.value), z.number(), z.boolean()]);
const redirectOptions = z.object({ query: z.record(z.string(), scalar.nullable()).nullish() }).nullish();

/** Takes `(url, { query })`. */
const goingTo =
  (set: (login: LoginAsked, url: string) => void): Take<WithLogin> =>
  (outcome, given) => {
    const read = z.tuple([address, redirectOptions.optional()]).rest(z.unknown()).safeParse(given);
    const url = read.success ? pageAddress(read.data[0]) : undefined;
    if (url === undefined || !read.success) return false;
    for (const [key, value] of Object.entries(read.data[1]?.query ?? {})) {
      if (value !== null) url.searchParams.append(key, String(value));
    }
    if (url.href.length > LONGEST_ADDRESS) return false;
    set(outcome.login, url.href);
    return true;
  };

const recordMethod: Take<WithLogin> = ({ login }, given) => {
  const [named] = z.tuple([address]).rest(z.unknown()).safeParse(given).data ?? [];
  const { protocol } = URL.parse(named ?? '') ?? {};
  if (named === undefined || (protocol !== 'https:' && protocol !== 'http:')) return false;
  if (login.methods.length >= MOST.methods) return false;
  login.methods = [...new Set([...login.methods, named])];
  return true;
};

const setTransactionMetadata: Take<WithLogin> = ({ login }, given) => {
  const read = z.tuple([name, scalar.nullable()]).rest(z.unknown()).safeParse(given);
  if (!read.success) return false;
  const [key, value] = read.data;
  if (value === null) delete login.transaction[key];
  else if (Object.hasOwn(login.transaction, key) || Object.keys(login.transaction).length < MOST.entries)
    setMember(login.transaction, key, value);
  else return false;
  return true;
};

/** Only once in a login. */
const setPrimaryUser: Take<WithLogin> = ({ login }, given) => {
  const read = z.tuple([name]).rest(z.unknown()).safeParse(given);
  if (!read.success || login.primaryUser !== undefined) return false;
  login.primaryUser = read.data[0];
  return true;
};

const scopeArgument = z.tuple([scopeToken]).rest(z.unknown());

const setScope =
  (isAdded: boolean): Take<WithLogin> =>
  ({ login }, given) => {
    const read = scopeArgument.safeParse(given);
    if (read.success) setMember(login.scopes, read.data[0], isAdded);
    return read.success;
  };

/** The methods of `post-login`, by name. */
export const LOGIN_TAKE: Record<string, Take<WithLogin>> = {
  ...KEPT_TAKE,
  ...ASSERTION_TAKE,
  ...FACTORS_TAKE,
  'authentication.setPrimaryUser': setPrimaryUser,
  'accessToken.addScope': setScope(true),
  'accessToken.removeScope': setScope(false),
  'redirect.sendUserTo': goingTo((login, url) => {
    login.redirect = url;
  }),
  'authentication.recordMethod': recordMethod,
  'transaction.setMetadata': setTransactionMetadata,
};

/** Methods that an action has only when it continues after its redirect. */
export const CONTINUING_METHODS: ReadonlySet<string> = new Set(['authentication.recordMethod']);

/** The additional methods of a password reset. */
export const RESET_TAKE = {
  'authentication.challengeWith': FACTORS_TAKE['authentication.challengeWith'],
  'authentication.challengeWithAny': FACTORS_TAKE['authentication.challengeWithAny'],
  'transaction.setResultUrl': goingTo((login, url) => {
    login.resultUrl = url;
  }),
} satisfies Record<string, Take<WithLogin>>;
