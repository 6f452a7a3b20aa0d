// The parts of the section "Security", and the scopes to see them.
import { CONSOLE } from '../console-callbacks.ts';
import type { ConsoleSession } from '../console-page.ts';

export const SECURITY = `${CONSOLE}/security`;

/** The scopes of each part, by the last segment of its path. */
export const PARTS = {
  factors: ['read:guardian_factors', 'read:mfa_policies'],
  attacks: ['read:attack_protection'],
  blocked: ['read:users', 'read:anomaly_blocks', 'read:logs'],
  keys: ['read:signing_keys'],
  sessions: ['read:tenant_settings'],
  tenant: ['read:tenant_settings'],
} as const satisfies Record<string, readonly string[]>;

export type Part = keyof typeof PARTS;

export const pathOfPart = (part: Part): string => `${SECURITY}/${part}`;

export interface SectionTab {
  path: string;
  /** A message key. */
  text: string;
  isCurrent: boolean;
}

/** Returns the parts that an administrator may see, as tabs. */
export function tabsOf({ can }: Pick<ConsoleSession, 'can'>, current?: Part): SectionTab[] {
  return (Object.keys(PARTS) as Part[])
    .filter((part) => PARTS[part].every(can))
    .map((part) => ({
      path: pathOfPart(part),
      text: `console.security.${part}`,
      isCurrent: part === current,
    }));
}
