// The npm packages that an action requires: its own, and those of its modules.
import type { RunnableAction } from '../../records/tenant/actions.ts';
import type { Requiring } from '../scripts/packages/packages.ts';

/** Returns an action together with its modules, as far as packages go. */
export function packageRequirement({ name, code, dependencies, modules }: RunnableAction): Requiring {
  const found = modules.flatMap((one) => one.found ?? []);
  return {
    name,
    // Each module in a function of its own, as it runs: two modules may use the same name.
    code: [code, ...found.map((one) => `;(function () {${one.code}\n});`)].join('\n'),
    dependencies: [...new Set([...dependencies, ...found.flatMap((one) => one.dependencies)])],
  };
}
