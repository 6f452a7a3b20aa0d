// Warns at the start about bound actions that cannot run because a package is missing.
import type { Logger } from 'pino';
import { TRIGGER_ENTRIES, type Trigger } from '../../records/tenant/actions.ts';
import type { Config } from '../../tenant/config.ts';
import type { Packages } from '../scripts/packages/packages.ts';
import { packageRequirement } from './action-packages.ts';

interface WarnDependencies {
  config: Pick<Config, 'actions'>;
  packages: Pick<Packages, 'faultOf'>;
  log: Pick<Logger, 'warn'>;
}

export async function warnOfMissingPackages({ config, packages, log }: WarnDependencies): Promise<void> {
  for (const trigger of Object.keys(TRIGGER_ENTRIES) as Trigger[])
    for (const action of config.actions(trigger)) {
      const fault = await packages.faultOf(packageRequirement(action));
      if (fault !== undefined)
        log.warn({ action: action.name, trigger }, `the action ${action.name} cannot run: ${fault}`);
    }
}
