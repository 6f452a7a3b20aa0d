// Locked accounts and throttled addresses, for administrators, who can end both.
import type { Clock } from '../../runtime/clock.ts';
import type { Store } from '../../store/contract.ts';
import type { Config } from '../../tenant/config.ts';
import { accountOf, accountTotalId, addressId, failuresNow } from './attempts.ts';
import { protectionOf, protectionSettings } from './rate-limit.ts';

/** An account, by the identifier that is typed at a login. */
interface LockedAccount {
  /** The connection's name. */
  connection: string;
  identifier: string;
}

export interface Locks {
  lockedFor(account: LockedAccount): Promise<string[]>;
  /** Returns whether brute-force protection blocks accounts. */
  isEnabled(): boolean;
  /** Unlocks an account for all callers. */
  unlock(account: LockedAccount): Promise<void>;
  /** Returns whether an address is throttled for failures across accounts. */
  isThrottled(ip: string): Promise<boolean>;
  /** Ends the throttling of an address. */
  release(ip: string): Promise<void>;
}

export function createLocks({ store, config, clock }: { store: Store; config: Config; clock: Clock }): Locks {
  const failures = store.collection('failures');
  const forever = { rate: Number.POSITIVE_INFINITY };
  return {
    lockedFor: async (account) => {
      const { max_attempts: most } = protectionOf(config, account).bruteForceProtection;
      const counts = await failures.findBy('account', accountOf(account));
      const full = counts.filter((count) => failuresNow(count, forever, clock()) > most - 1);
      return [...new Set(full.flatMap(({ ip }) => ip ?? []))];
    },
    isEnabled: () => {
      const { enabled, shields } = protectionSettings(config).bruteForceProtection;
      return enabled && shields.includes('block');
    },
    unlock: async (account) => {
      const hash = accountOf(account);
      const counts = await failures.findBy('account', hash);
      await failures.deleteBy('account', hash);
      // The counts of all strangers are cleared, too: an administrator vouches for the owner.
      for (const one of new Set([hash, ...counts.flatMap(({ account: reached = [] }) => reached)]))
        for (const proof of ['password', 'code'] as const) await failures.delete(accountTotalId(one, proof));
    },
    isThrottled: async (ip) => {
      const { enabled, shields, stage } = protectionSettings(config).suspiciousIpThrottling;
      const { max_attempts: most, rate } = stage['pre-login'];
      if (!enabled || !shields.includes('block')) return false;
      return failuresNow(await failures.get(addressId(ip)), { rate }, clock()) > most - 1;
    },
    release: async (ip) => {
      await failures.delete(addressId(ip));
      await failures.delete(addressId(ip, 'console'));
      await failures.delete(addressId(ip, 'pre-custom-token-exchange'));
    },
  };
}
