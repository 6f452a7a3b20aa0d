// The capabilities of a tenant, which its features stand on (configuration, limits, delivery, signing ...). Each is
// made once, and is given its dependencies by name.
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Logger } from 'pino';
import type { Actions } from '../capabilities/actions/actions.ts';
import { emailActions } from '../capabilities/actions/email-message.ts';
import { phoneActions } from '../capabilities/actions/phone-message.ts';
import { createMessages } from '../capabilities/delivery/deliver.ts';
import { createDeliveries, type Deliveries } from '../capabilities/delivery/deliveries.ts';
import { limitedSms } from '../capabilities/delivery/limited-sms.ts';
import { createOutbox } from '../capabilities/delivery/outbox.ts';
import type { Pause } from '../capabilities/delivery/queue.ts';
import { createTemplates } from '../capabilities/delivery/templates.ts';
import type { OutgoingEmail, OutgoingSms } from '../capabilities/delivery/transport.ts';
import { chooseTransports } from '../capabilities/delivery/transports.ts';
import { createTenantLiquid, type ReportingLiquid, reportingLiquid } from '../capabilities/liquid/liquid.ts';
import { createViews, type Views } from '../capabilities/pages/views.ts';
import type { Attempt } from '../capabilities/protection/attempt.ts';
import { createAttempts, nameKey } from '../capabilities/protection/attempts.ts';
import { createKnownCallers } from '../capabilities/protection/callers.ts';
import { type Challenges, createChallenges } from '../capabilities/protection/challenges.ts';
import { createLoginTickets } from '../capabilities/protection/login-tickets.ts';
import { createRateLimits, type RateLimits } from '../capabilities/protection/rate-limit.ts';
import { createXmlReader } from '../capabilities/saml-messages/reader.ts';
import { openHolder } from '../capabilities/signing/holder.ts';
import { createSigning } from '../capabilities/signing/signing.ts';
import { clientCertificates } from '../capabilities/tls/client-certificates.ts';
import type { LimitLogin } from '../features/connections/database/limit-login.ts';
import { resetRequests } from '../features/connections/database/reset-link.ts';
import { lockNotice } from '../features/connections/database/unblock.ts';
import { lazyDirectories } from '../features/connections/ldap/lazy.ts';
import { providerChecks } from '../features/connections/provider-checks.ts';
import type { Metrics } from '../features/metrics/registry.ts';
import { createCsrf } from '../http/csrf.ts';
import { createDns } from '../http/dns.ts';
import { createOutbound, type Outbound, outboundRules, tracedOutbound } from '../http/outbound.ts';
import { createBackground } from '../runtime/background.ts';
import type { Clock } from '../runtime/clock.ts';
import type { Random } from '../runtime/secrets.ts';
import type { SpareThreads } from '../runtime/spare-threads.ts';
import type { Tracing } from '../runtime/tracing.ts';
import type { Waits } from '../runtime/waits.ts';
import { outboundAllow, SECRET_SETTINGS, type Settings } from '../settings/index.ts';
import type { Store } from '../store/contract.ts';
import { createLeases } from '../store/leases.ts';
import { type Config, openConfig } from '../tenant/config.ts';
import type { Events } from '../tenant/events.ts';
import { type Administrators, type AllUsers, withAdministrators } from '../users/administrators.ts';
import type { TenantUsers } from '../users/users.ts';
import { configsOf } from './configs.ts';
import { LIMITS, ROUTE_LIMITS } from './features.ts';
import { ownCode } from './own-code.ts';
import { secondFactors } from './tenant-factors.ts';
import { tenantLog } from './tenant-log.ts';

const VIEWS = fileURLToPath(new URL('../../views', import.meta.url));

/** Everything that a tenant is built from. There is no other state. */
export interface TenantDependencies {
  settings: Settings;
  store: Store;
  users: TenantUsers;
  administrators: Administrators;
  log: Logger;
  /** A monotonic clock, for durations: expiry, limits, timeouts. */
  clock: Clock;
  /** The time of day, which may be set back. For dates that others have set or compare with their own clocks. */
  wallClock: Clock;
  random: Random;
  /** Waits between two attempts to send a message. Tests pass their own. */
  pause?: Pause;
  /** How long a request waits for the outcome of its message, milliseconds. */
  maxWait?: number;
  waits?: Waits;
  /** The idle threads that scripts may use, and that they are returned to at the stop. */
  spareThreads?: SpareThreads | undefined;
  /** Undefined where metrics are off. */
  metrics?: Metrics | undefined;
  tracing?: Tracing | undefined;
}

/** The same once the capabilities are made: features know the users with the tenant's own code, and the administrators. */
export type ServedDependencies = Omit<TenantDependencies, 'users'> & { users: AllUsers };

interface CapabilityDependencies extends TenantDependencies {
  /** Aborted when the server begins to stop. */
  ending: AbortSignal;
}

/** Makes the capabilities that do not depend on the engine. @throws Error when the store holds no tenant. */
export async function createCapabilities(deps: CapabilityDependencies) {
  const { settings, store, log, clock, wallClock, random, metrics } = deps;
  const configs = configsOf(await openConfig(store), deps);
  const { config } = configs;
  const background = createBackground(log);
  const { events, ...logged } = tenantLog(deps, config, background);
  const challenges = createChallenges({ store, clock, random });
  const limiting = { store, config, clock, measures: metrics?.measures };
  const rateLimits = createRateLimits({ ...limiting, limits: LIMITS, routeLimits: ROUTE_LIMITS });
  const leases = createLeases({ store, clock, random });
  const callers = createKnownCallers(store, clock);
  const rules = outboundRules(outboundAllow(settings));
  const outbound = tracedOutbound(createOutbound({ rules }), deps.tracing);
  const deliveries = createDeliveries(deps);
  const tenantCode = ownCode(deps, { background, config, deliveries, events, leases, outbound, rateLimits });
  const people = {
    tenantUsers: tenantCode.users,
    users: withAdministrators(tenantCode.users, deps.administrators),
  };
  const { settings: tenantSettings, look } = config;
  const liquid = tenantTemplates(log, events);
  const views = createViews({ directory: VIEWS, random, settings: tenantSettings, look, liquid });
  const sendingDependencies = { config, deliveries, events, outbound, rateLimits, views };
  const sender = delivery(deps, { ...tenantCode, ...challenges, ...sendingDependencies });
  const { baseUrl } = settings;
  const shared = { config, events, challenges, rateLimits, background, callers, leases };
  const onLocked = lockNotice({ ...shared, ...sender, baseUrl, store, users: deps.users });
  const onThrottled = recordThrottling(events);
  const directories = lazyDirectories({ outbound, clock });
  const xml = createXmlReader();
  return {
    ...configs,
    ...shared,
    ...logged,
    /** Counts a login attempt. @throws AuthError 429 when one address tries one user too often. */
    limitLogin: limitLogins(rateLimits),
    directories,
    xml,
    providers: providerChecks({ ...deps, ...outbound, config, background, directories, xml }),
    certificates: clientCertificates(wallClock),
    dns: createDns(settings.dnsServers),
    outbound,
    ...tenantCode,
    ...people,
    attempts: createAttempts({ store, config, callers, clock, onLocked, onThrottled }),
    ...sender,
    tickets: createLoginTickets(challenges, random),
    views,
    requestReset: resetRequests({ ...deps, ...tenantCode, ...shared, ...sender, baseUrl }),
    csrf: createCsrf(baseUrl, random),
    ...signingOf(deps, { config, outbound }),
    ...secondFactors({ ...deps, ...people }, { config, ...sender, rateLimits, outbound }),
  };
}

/** Makes the renderer of the tenant's own templates. The log tells of those that fail. */
const tenantTemplates = (log: Logger, events: Pick<Events, 'record'>): ReportingLiquid =>
  reportingLiquid(createTenantLiquid(), ({ name, fault }) => {
    log.warn({ template: name, fault }, 'a template failed: ours is used');
    events.record({ type: 'template_failed', description: `${name}: ${fault}`, details: { template: name } });
  });

/** Makes the signing of tokens, and the client of the service that holds the keys where they are not in the store. */
function signingOf(
  { settings, store, log, clock, wallClock, waits }: TenantDependencies,
  { config, outbound }: { config: Config; outbound: Outbound },
) {
  const keyHolder = openHolder(settings.signing, {
    outbound,
    log,
    clock,
    timeout: waits?.signature,
    hidden: SECRET_SETTINGS,
  });
  const commonName = new URL(settings.baseUrl).hostname;
  return {
    keyHolder,
    signing: createSigning({ store, config, clock: wallClock, commonName, holder: keyHolder }),
  };
}

function limitLogins(rateLimits: RateLimits): LimitLogin {
  return (ctx, connection, identifier) =>
    rateLimits.takeFrom(ctx, 'login', `${connection.name}\n${nameKey(identifier)}`);
}

function recordThrottling(events: Events) {
  return ({ connection, identifier, ip }: Attempt) =>
    events.record({
      type: 'limit_mu',
      ip,
      // An attempt that belongs to no account has neither.
      ...(connection !== '' && { connection, user_name: identifier }),
    });
}

export type Capabilities = Awaited<ReturnType<typeof createCapabilities>>;

/** Makes everything that sends: e-mail, SMS, and the queue of deliveries that features use for the rest. */
function delivery(
  deps: CapabilityDependencies,
  parts: {
    actions: Actions;
    config: Config;
    deliveries: Deliveries;
    events: Events;
    outbound: Outbound;
    rateLimits: RateLimits;
    revoke: Challenges['revoke'];
    views: Views;
  },
) {
  const { settings, clock, wallClock, random } = deps;
  const { config, deliveries, outbound } = parts;
  const outbox = createOutbox({ directory: join(settings.dataDir, 'outbox'), clock, random });
  const { mailFrom, hasSmsProvider, isMailCustom, ...transports } = chooseTransports(settings, {
    config,
    outbound,
    outbox,
    wallClock,
  });
  const { rateLimits } = parts;
  const delivering = { actions: parts.actions, wallClock };
  const email = emailActions(delivering, transports.email, isMailCustom);
  const sms = limitedSms(phoneActions(delivering, transports.sms, hasSmsProvider), {
    take: (number) => rateLimits.spend('smsDestination', number),
    giveBack: (number) => rateLimits.giveBack('smsDestination', number),
  });
  const templates = createTemplates({
    directory: VIEWS,
    locales: parts.views.locales,
    baseUrl: settings.baseUrl,
    settings: config.settings,
    mailFrom,
    liquid: parts.views.liquid,
  });
  const { measures } = deps.metrics ?? {};
  const messages = createMessages({ ...deps, ...parts, email, sms, deliveries, templates, measures });
  return {
    outbox,
    deliveries,
    messages,
    templates,
    /** Sends an e-mail at once and does not retry, for a caller who waits for the outcome. */
    sendEmail: (message: OutgoingEmail) => email.deliver(message, random(16).toString('hex')),
    /** Sends an SMS at once and does not retry; through the tenant's action for phone messages where it has one. */
    sendSms: (message: OutgoingSms) => sms.deliver(message, random(16).toString('hex')),
  };
}
