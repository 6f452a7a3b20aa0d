// The one end of every login in the browser: what the user is asked for, and how the request goes on.
import type { Context } from 'koa';
import type Provider from 'oidc-provider';
import { errors, type InteractionResults } from 'oidc-provider';
import { AuthError } from '../http/errors.ts';
import type { Store } from '../store/contract.ts';
import type { Login } from '../users/login.ts';
import { isByConnection, refusalOf } from './admission.ts';
import { firstFactorOf } from './first-factor.ts';
import { OIDC, rememberConsent } from './grants.ts';
import { readNotes } from './implicit.ts';
import { browserSecretOf } from './interaction-browser.ts';
import { type LoginEventsDependencies, tellLogin } from './login-events.ts';
import { isOidc, type MissingConsent, missingConsent, resourceScopes } from './missing-consent.ts';
import type { SecondFactor } from './second-factor.ts';
import { engineLogin } from './settle.ts';
import { wantedOf } from './step-up.ts';

/** An authorization request that waits for its user. */
export interface PendingInteraction {
  uid: string;
  /** `login`, `consent` or `select_account`. */
  prompt: string;
  clientId: string;
  /** The authorization request's parameters, as the engine has them. */
  params: Readonly<Record<string, string | undefined>>;
  /** Parameters to forward to an upstream provider. */
  upstream: Readonly<Record<string, string>>;
  /** The ticket of a login done before the request, as the application sent it. */
  loginTicket: string | undefined;
  /** Who is logged in already. */
  userId: string | undefined;
  /** What a third-party application asks the user to allow. */
  missing: MissingConsent;
  /** Who has given the first factor and still lacks the second: in this request, or in the session. */
  firstFactor: Login | undefined;
  /** What {@link Interactions.remember} kept. */
  remembered: Readonly<Record<string, unknown>>;
}

/** What is known of a waiting request wherever its browser asks. */
export type WaitingRequest = Pick<PendingInteraction, 'uid' | 'prompt' | 'clientId' | 'params'>;

/** A second factor that was given at the hosted pages. */
export interface SecondFactorGiven {
  userId: string;
  acr: string;
  /** What it was (RFC 8176 §2), where there is a word for it. */
  methods: readonly string[];
}

export interface Interactions {
  /** @throws AuthError 400 when the request of this browser is over, expired or never was. */
  pending(ctx: Context): Promise<PendingInteraction>;
  /**
   * What a request is for, at an address that is not its own.
   * @throws AuthError 400 when no such request waits in this browser.
   */
  find(ctx: Context, uid: string): Promise<WaitingRequest>;
  /**
   * The user has logged in: the request goes on, to the second factor where one is needed. A user who may not
   * come in is sent back as an error.
   * @throws AuthError 403 `invalid_grant` when the login does not hold any more: the user is gone, or has a new
   *   password since; or when the request names another connection than the login came by.
   */
  login(ctx: Context, login: Login): Promise<void>;
  /**
   * The user who has given the first factor has given the second, too: the request goes on; where the first
   * factor does not hold any more, to the page that asks for it.
   * @throws AuthError 400 when it was somebody else's.
   */
  secondFactor(ctx: Context, user: SecondFactorGiven): Promise<void>;
  /** Keeps JSON beside the request, until it ends; the browser does not see it. */
  remember(ctx: Context, data: Record<string, unknown>): Promise<void>;
  /** The user keeps the account that is logged in. */
  keepAccount(ctx: Context): Promise<void>;
  /** The user allows what the application asks for. */
  consent(ctx: Context): Promise<void>;
  /** The request ends as an error at the application. */
  refuse(ctx: Context, error: string, description: string): Promise<void>;
}

/** Where the browser is sent for an interaction; the engine's cookie for it is limited to this path. */
export function interactionPath(uid: string): string {
  return `/u/${uid}`;
}

/** There is no such request of this browser, or no more. */
export function requestExpired(cause?: unknown): AuthError {
  return new AuthError(400, 'invalid_request', 'This login request has expired or was already used.', {
    extra: { reason: 'request_expired' },
    cause,
  });
}

type Interaction = InstanceType<Provider['Interaction']>;

/** What is beside a request: what the engine was answered before, and what we keep. */
interface Kept extends InteractionResults {
  firstFactor?: Login;
  remembered?: Record<string, unknown>;
}

/** The interactions of one provider. */
export function interactions(
  provider: Provider,
  deps: { store: Store; secondFactor: SecondFactor } & LoginEventsDependencies,
): Interactions {
  const load = async (ctx: Context): Promise<Interaction> => {
    const interaction = await provider.interactionDetails(ctx.req, ctx.res).catch((thrown: unknown) => {
      throw thrown instanceof errors.SessionNotFound ? requestExpired(thrown) : thrown;
    });
    // The engine goes by a cookie that others could have set, whatever the path says.
    const isOfBrowser = browserSecretOf(ctx, interaction) !== undefined;
    if (!isOfBrowser || interaction.uid !== ctx.params.uid) throw requestExpired();
    return interaction;
  };
  const goOn = async (ctx: Context, interaction: Interaction, result: InteractionResults): Promise<void> => {
    // What was answered before goes along; what we kept beside it does not, or the next step would find it.
    const { firstFactor: _, remembered: _kept, ...before } = (interaction.lastSubmission ?? {}) as Kept;
    Object.assign(interaction, { result: 'error' in result ? result : { ...before, ...result } });
    await interaction.persist();
    ctx.redirect(interaction.returnTo);
  };
  const refuse = (ctx: Context, interaction: Interaction, error: string, description: string) =>
    goOn(ctx, interaction, { error, error_description: description });

  /** A login that may not end well: as an error at the application, or, where it can be mended, on the page. */
  const end = async (ctx: Context, interaction: Interaction, login: Login, refusal: AuthError) => {
    const { error, error_description: description } = refusal;
    await tellLogin(deps, 'f', login, {
      clientId: String(interaction.params.client_id),
      ip: ctx.ip,
      description,
    });
    if (error === 'invalid_grant') throw refusal;
    await refuse(ctx, interaction, error, description);
  };

  const finish = async (
    ctx: Context,
    interaction: Interaction,
    login: Login & { acr?: string },
  ): Promise<void> => {
    await goOn(ctx, interaction, { login: { ...engineLogin(login) }, select_account: {} });
  };

  return {
    pending: async (ctx) => {
      const interaction = await load(ctx);
      return {
        ...describe(interaction),
        firstFactor: await firstFactorOf(provider, deps.users, interaction),
      };
    },
    find: async (ctx, uid) => {
      const interaction = await provider.Interaction.find(uid);
      if (interaction === undefined || browserSecretOf(ctx, interaction) === undefined)
        throw requestExpired();
      const { prompt, clientId, params } = describe(interaction);
      return { uid, prompt, clientId, params };
    },
    login: async (ctx, login) => {
      const { userId, amr, connection, credentialVersion } = login;
      const interaction = await load(ctx);
      const refusal = await refusalOf(deps.users, login);
      if (refusal !== undefined) return end(ctx, interaction, login, refusal);
      const { clientId, params } = describe(interaction);
      if (!isByConnection(params.connection, connection)) {
        throw new AuthError(403, 'invalid_grant', 'The request is for another connection.');
      }
      const asked = { ...wantedOf(params), browser: true, ctx };
      if (await deps.secondFactor.isDemanded({ userId, clientId, amr, credentialVersion, ...asked })) {
        await tellLogin(deps, 'mfar', login, { clientId, ip: ctx.ip });
        // Beside the request, where only we write.
        await keep(interaction, { firstFactor: { userId, amr, connection, credentialVersion } });
        return ctx.redirect(`${interactionPath(interaction.uid)}/mfa`);
      }
      await finish(ctx, interaction, login);
    },
    secondFactor: async (ctx, { userId, acr, methods }) => {
      const interaction = await load(ctx);
      const firstFactor = await firstFactorOf(provider, deps.users, interaction);
      if (firstFactor === undefined) return ctx.redirect(interactionPath(interaction.uid));
      if (firstFactor.userId !== userId) throw requestExpired();
      const refusal = await refusalOf(deps.users, firstFactor);
      if (refusal !== undefined) return end(ctx, interaction, firstFactor, refusal);
      const amr = [...new Set([...firstFactor.amr, ...methods, 'mfa'])];
      await finish(ctx, interaction, { ...firstFactor, amr, acr });
    },
    remember: async (ctx, remembered) => {
      const interaction = await load(ctx);
      await keep(interaction, { ...(interaction.lastSubmission as object | undefined), remembered });
    },
    keepAccount: async (ctx) => goOn(ctx, await load(ctx), { select_account: {} }),
    consent: async (ctx) => {
      const interaction = await load(ctx);
      const { userId, clientId, missing, params } = describe(interaction);
      if (userId === undefined) throw new AuthError(400, 'invalid_request', 'Nobody is logged in.');
      const asked = (params.scope ?? '').split(' ').filter(isOidc);
      await rememberConsent(deps.store, userId, clientId, {
        [OIDC]: [...missing.oidcScopes, ...asked],
        ...resourceScopes(interaction),
      });
      await goOn(ctx, interaction, { consent: {} });
    },
    refuse: async (ctx, error, description) => refuse(ctx, await load(ctx), error, description),
  };
}

function describe(interaction: Interaction): Omit<PendingInteraction, 'firstFactor'> {
  const params = interaction.params as Record<string, string | undefined>;
  return {
    uid: interaction.uid,
    prompt: interaction.prompt.name,
    clientId: String(params.client_id),
    params,
    upstream: readNotes(params).upstream,
    loginTicket: readNotes(params).loginTicket,
    userId: interaction.session?.accountId,
    missing: missingConsent(interaction),
    remembered:
      (interaction.lastSubmission as { remembered?: Record<string, unknown> } | undefined)?.remembered ?? {},
  };
}

/** Keeps our own data in the interaction, where the engine has room for the last submission. */
async function keep(interaction: Interaction, data: object): Promise<void> {
  Object.assign(interaction, { lastSubmission: data });
  await interaction.persist();
}
