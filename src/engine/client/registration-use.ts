// Keeps applications of strangers for as long as they are used.
import type { RateLimits } from '../../capabilities/protection/rate-limit.ts';
import { AuthError } from '../../http/errors.ts';
import type { Frozen } from '../../records/base/record.ts';
import { isStrangerId, type RegistrationRecord } from '../../records/clients/registrations.ts';
import { UNUSED_DAYS } from '../../records/tenant/tenant-settings.ts';
import { type Clock, epochSeconds } from '../../runtime/clock.ts';
import type { Store } from '../../store/contract.ts';
import type { Config } from '../../tenant/config.ts';
import { engineLimits } from '../base/engine-declaration.ts';

const DAY_SECONDS = 86_400;

export interface UseDependencies {
  store: Pick<Store, 'collection'>;
  config: Pick<Config, 'settings'>;
  clock: Clock;
  wallClock: Clock;
}

// docs/understand/decisions/clients-keys.md#a-user-brings-twenty-new-applications-at-once-then-one-an-hour
/**
 * Keeps an application that a user allows something, as {@link recordUse}.
 * @throws AuthError 429 where it is a stranger's that nobody has used, and the user was the first with too many of them.
 */
export async function recordAllowed(
  deps: UseDependencies & { rateLimits: Pick<RateLimits, 'spend'> },
  clientId: string,
  userId: string,
): Promise<void> {
  const found = await registrationOf(deps, clientId);
  if (found === undefined) return;
  if (
    found.last_used_at === undefined &&
    !(await deps.rateLimits.spend(engineLimits.newApplications, userId))
  )
    throw new AuthError(
      429,
      'too_many_requests',
      'You have allowed too many new applications. Try again later.',
    );
  await keep(deps, found);
}

/** Keeps an application that is used, where it is a stranger's. It is written at most once a day. */
export async function recordUse(deps: UseDependencies, clientId: string): Promise<void> {
  const found = await registrationOf(deps, clientId);
  if (found !== undefined) await keep(deps, found);
}

async function registrationOf({ store }: UseDependencies, clientId: string) {
  return isStrangerId(clientId) ? store.collection('registrations').get(clientId) : undefined;
}

async function keep(deps: UseDependencies, { id, last_used_at }: Frozen<RegistrationRecord>): Promise<void> {
  const now = deps.wallClock();
  if (Math.abs(now - Date.parse(last_used_at ?? '')) < DAY_SECONDS * 1000) return;
  const days = deps.config.settings().tenant.dynamic_client_registration?.unused_days ?? UNUSED_DAYS.usual;
  const change = (current: object): RegistrationRecord => ({
    ...(current as RegistrationRecord),
    last_used_at: new Date(now).toISOString(),
    // A day longer, for which a use may not be written.
    expiresAt: epochSeconds(deps.clock) + (days + 1) * DAY_SECONDS,
  });
  await deps.store.collection('registrations').update(id, change);
}
