// What actions of `post-login` may ask for in addition to those of other triggers: redirects, second factors, scopes,
// and changes of the session and its tokens.
import { z } from 'zod';
import { isLoopback } from '../../http/loopback.ts';
import { hasUserInfo } from '../../http/outbound-rules.ts';
import { type ApiMethod, memberName, scopeToken, setMember } from './api-method.ts';
import { ASSERTION_METHODS, type AssertionChanges, noAssertionChanges } from './assertion-methods.ts';
import { FACTOR_METHODS, type RequiredFactors } from './factor-methods.ts';
import { noSessionChanges, SESSION_METHODS, type SessionChanges } from './session-methods.ts';

/** What the actions of a login asked for together, in addition to the members of every outcome. */
export interface LoginChanges {
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
export function noLoginChanges(): LoginChanges {
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
export const LOGIN_METHODS: Record<string, ApiMethod<WithLoginChanges>> = {
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
export const CONTINUING_METHODS: ReadonlySet<string> = new Set(['authentication.recordMethod']);

/** The additional methods of a password reset. */
export const RESET_METHODS = {
  'authentication.challengeWith': FACTOR_METHODS['authentication.challengeWith'],
  'authentication.challengeWithAny': FACTOR_METHODS['authentication.challengeWithAny'],
  'transaction.setResultUrl': setPageAddress((login, url) => {
    login.resultUrl = url;
  }),
} satisfies Record<string, ApiMethod<WithLoginChanges>>;
