// /account/applications: the applications that may act for the user, and the user's linked and connected accounts.
import type { Context } from 'koa';
import { mailOwners } from '../../../capabilities/delivery/link-notice.ts';
import { type FormattedTime, timesOf } from '../../../capabilities/pages/times.ts';
import { shownClient } from '../../../capabilities/pages/views.ts';
import { isOidcScope, OIDC_CONSENT_KEY, toAudience } from '../../../engine/base/request-extensions.ts';
import type { RefreshTokenDirectory, RefreshTokenView } from '../../../engine/session/refresh-directory.ts';
import { AuthError } from '../../../http/errors.ts';
import { languagesOf } from '../../../http/languages.ts';
import { formFields } from '../../../http/server/body.ts';
import type { RouteDeclarations } from '../../../http/server/router.ts';
import type { Frozen } from '../../../records/base/record.ts';
import { isClientUrl } from '../../../records/clients/registrations.ts';
import { hostOfCallback, isSelfRegistered, isStranger } from '../../../records/clients/third-parties.ts';
import type { Client } from '../../../records/collections.ts';
import { type ConsentRecord, consentId } from '../../../records/state/engine.ts';
import type { Store } from '../../../store/contract.ts';
import { primaryIdentity } from '../../../users/changes.ts';
import { connectedAccountsOf } from '../../../users/users-connected-accounts.ts';
import { type ShownScope, shownScopes } from '../../flow/flow-pages.ts';
import { type ConnectedDependencies, removeConnected } from '../account-connected-accounts.ts';
import { accountEvents } from '../account-declaration.ts';
import { ACCOUNT } from './account-callbacks.ts';
import {
  type AccountPageDependencies,
  back,
  declareAccountPage,
  formRoute,
  pageRoute,
  renderAccount,
} from './account-page.ts';
import { allowsLinking } from './linking.ts';
import { type NoticeDependencies, recordChange } from './notices.ts';

export interface ApplicationsDependencies
  extends AccountPageDependencies,
    NoticeDependencies,
    ConnectedDependencies {
  refreshTokens: RefreshTokenDirectory;
  store: Store;
  /** Ends the sessions, tokens and passkeys of an identity that was unlinked. */
  endUnlinked(userId: string, identity: { connection: string }): Promise<void>;
}

const SECTION = '/applications';

interface OwnApplicationsModel {
  applications: {
    id: string;
    name: string;
    /** Where the access of a stranger's application goes, which it has not named itself. */
    hosts: string[];
    /** The host whose document describes it. */
    documentHost: string | undefined;
    /** Whether it registered itself, under a name of its own. */
    isUnverified: boolean;
    /** What it may do. */
    scopes: ShownScope[];
    /** Whether it has a refresh token. */
    staysLoggedIn: boolean;
    used: FormattedTime | undefined;
  }[];
  identities: { id: string; name: string; address: string | undefined; isFirst: boolean }[];
  connected: { id: string; name: string; scopes: string; since: FormattedTime }[];
  /** Whether another account can be linked. */
  mayLink: boolean;
}

export const OWN_APPLICATIONS_PAGE = declareAccountPage<OwnApplicationsModel>('own/applications');

export const applicationsRoutes: RouteDeclarations<ApplicationsDependencies> = {
  [`GET ${ACCOUNT}${SECTION}`]: pageRoute(SECTION, async (deps, ctx, actor) => {
    const [applications, identities, connected] = await Promise.all([
      applicationsOf(deps, ctx, actor.user.id),
      identitiesOf(deps, actor.user.id),
      connectedOf(deps, ctx, actor.user.id),
    ]);
    const model = { applications, identities, connected, mayLink: allowsLinking(deps, actor) };
    await renderAccount(deps, ctx, actor, { page: OWN_APPLICATIONS_PAGE, section: SECTION, model });
  }),
  [`POST ${ACCOUNT}${SECTION}`]: formRoute(SECTION, { act: 'session' }, async (deps, ctx, actor) => {
    const { application } = formFields(ctx, 'application');
    await withdraw(deps, actor.user.id, application);
    recordChange(deps, ctx, actor, { type: accountEvents.account_changed, description: 'consent withdrawn' });
    back(ctx, SECTION, 'withdrawn');
  }),
  [`POST ${ACCOUNT}${SECTION}/unlink`]: formRoute(SECTION, { act: 'identity' }, unlink),
  [`POST ${ACCOUNT}${SECTION}/connected`]: formRoute(
    SECTION,
    { act: 'connected_account' },
    async (deps, ctx, actor) => {
      const { connected } = formFields(ctx, 'connected');
      const isRemoved = await removeConnected(deps, actor, connected).then(() => true, isGone);
      back(ctx, SECTION, isRemoved ? 'disconnected' : undefined);
    },
  ),
};

/** Treats an account that was already removed as removed. */
function isGone(thrown: unknown): false {
  if (thrown instanceof AuthError && thrown.status === 404) return false;
  throw thrown;
}

async function connectedOf(deps: ApplicationsDependencies, ctx: Context, userId: string) {
  const time = timesOf(deps, ctx);
  const list = new Intl.ListFormat(deps.views.locale(ctx).tag);
  const all = await connectedAccountsOf(deps, userId);
  return Promise.all(
    all.map(async ({ id, connection: name, scopes, created_at }) => {
      const connection = await deps.config.connection(name);
      return {
        id,
        name: connection?.display_name ?? name,
        scopes: list.format(scopes),
        since: time(created_at),
      };
    }),
  );
}

// docs/understand/decisions/console-account.md#an-application-is-ended-as-a-whole
/** Returns the applications that the user has consented to, or that have a refresh token. */
async function applicationsOf(deps: ApplicationsDependencies, ctx: Context, userId: string) {
  const { config, refreshTokens, store } = deps;
  const [consents, tokens] = await Promise.all([
    store.collection('consents').findBy('user', userId),
    refreshTokens.of(userId),
  ]);
  const time = timesOf(deps, ctx);
  const ids = new Set([...consents, ...tokens].map(({ client_id }) => client_id));
  const all = await Promise.all(
    [...ids].map(async (id) => {
      const client = await config.client(id);
      // One that was removed or forgotten can do nothing any more.
      if (client === undefined) return undefined;
      const consent = consents.find(({ client_id }) => client_id === id);
      const clientTokens = tokens.filter(({ client_id }) => client_id === id);
      const used = clientTokens
        .map((one) => one.last_exchanged_at ?? one.created_at)
        .filter((one) => one !== null);
      return {
        id,
        name: shownClient(client).name,
        hosts: isStranger(client) ? hostsOf(client, consent) : [],
        documentHost: isClientUrl(id) ? new URL(id).host : undefined,
        isUnverified: isSelfRegistered(client),
        scopes: await scopesOf(config, consent, clientTokens),
        staysLoggedIn: clientTokens.length > 0,
        used: time(used.sort().at(-1)),
      };
    }),
  );
  return all.filter((one) => one !== undefined).sort((a, b) => a.name.localeCompare(b.name));
}

/** Returns where the user was told that the access of an application goes; else where its answers go. */
function hostsOf({ callbacks }: Client, consent: Consent | undefined): string[] {
  const hosts = consent?.hosts ?? callbacks.flatMap((one) => hostOfCallback(one) ?? []);
  return [...new Set(hosts)];
}

type Consent = Frozen<ConsentRecord>;

/** Returns what an application may do: what the user has allowed, and what its refresh tokens are for. */
async function scopesOf(
  config: ApplicationsDependencies['config'],
  consent: Consent | undefined,
  tokens: readonly RefreshTokenView[],
): Promise<ShownScope[]> {
  const { [OIDC_CONSENT_KEY]: ofOpenId = [], ...ofApis } = consent?.scopes ?? {};
  const granted: (readonly [string, readonly string[]])[] = [
    ...Object.entries(ofApis).map(([key, scopes]) => [toAudience(key), scopes] as const),
    ...tokens.flatMap(({ resource_servers: apis }) => apis.map((api) => [api.audience, api.scopes] as const)),
  ];
  const apis: Record<string, string[]> = {};
  for (const [audience, scopes] of granted) {
    const known = (await config.resourceServer(audience))?.scopes.map(({ value }) => value) ?? [];
    apis[audience] = [
      ...new Set([...(apis[audience] ?? []), ...scopes.filter((one) => known.includes(one))]),
    ];
  }
  return shownScopes(config, ofOpenId.filter(isOidcScope), apis);
}

async function withdraw(
  { refreshTokens, store }: Pick<ApplicationsDependencies, 'refreshTokens' | 'store'>,
  userId: string,
  clientId: string,
): Promise<void> {
  // The consent goes first, so that an authorization that runs meanwhile finds none.
  await store.collection('consents').delete(consentId(userId, clientId));
  await refreshTokens.endAllOf(userId, clientId);
}

async function identitiesOf({ config, users }: ApplicationsDependencies, userId: string) {
  const identities = await users.identitiesOf(userId);
  const primary = primaryIdentity(identities);
  return Promise.all(
    identities.map(async (one) => {
      const connection = await config.connection(one.connection);
      return {
        id: one.id,
        name: connection?.display_name ?? one.connection,
        address: one.email ?? one.username ?? one.phone_number,
        isFirst: one.id === primary?.id,
      };
    }),
  );
}

async function unlink(
  deps: ApplicationsDependencies,
  ctx: Context,
  actor: Parameters<typeof recordChange>[2],
): Promise<void> {
  const { identity } = formFields(ctx, 'identity');
  const identities = await deps.users.identitiesOf(actor.user.id);
  const found = identities.find(({ id }) => id === identity);
  // The identity that the user was created with cannot be unlinked.
  if (found === undefined || found.id === primaryIdentity(identities)?.id) return back(ctx, SECTION);
  const still = [deps.users.stillWrite(actor.user)];
  if (!(await deps.users.unlink(actor.user.id, found.id, still))) return back(ctx, SECTION);
  await deps.endUnlinked(actor.user.id, found);
  recordChange(deps, ctx, actor, { type: accountEvents.account_changed, description: 'identity unlinked' });
  const owners = [actor.user, { ...found.profile }];
  await mailOwners(deps, owners, 'unlinked', { ip: ctx.ip, languages: languagesOf(ctx) });
  back(ctx, SECTION, 'unlinked');
}
