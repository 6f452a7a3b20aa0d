// How the process reports a fault before it exits.
import { SettingsFault } from '../settings/index.ts';
import { TenantFault } from '../tenant/load.ts';

/** Prints a fault without a stack trace and exits. */
export function fail(thrown: unknown): never {
  process.stderr.write(`${faultText(thrown)}\n`);
  process.exit(1);
}

/** Returns the text of a fault for people: one line, or a list where there are several faults. */
export function faultText(thrown: unknown): string {
  const list = (what: string, faults: readonly string[]) =>
    [what, ...faults.map((fault) => `  - ${fault}`)].join('\n');
  if (thrown instanceof SettingsFault) return list('The settings are wrong:', thrown.faults);
  if (thrown instanceof TenantFault) return list('The tenant file is wrong:', thrown.faults);
  return thrown instanceof Error ? thrown.message : String(thrown);
}
