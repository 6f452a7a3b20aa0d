// What an action needs of npm packages: its own, and those of the modules that it requires.
import type { RunnableAction } from '../records/actions.ts';
import type { Requiring } from '../scripts/packages/packages.ts';

/** An action together with its modules, as far as packages go. */
export function requiringOf({ name, code, dependencies, modules }: RunnableAction): Requiring {
  const found = modules.flatMap((one) => one.found ?? []);
  return {
    name,
    // Each in a function of its own, as they run: two may use one name.
    code: [code, ...found.map((one) => `;(function () {${one.code}\n});`)].join('\n'),
    dependencies: [...new Set([...dependencies, ...found.flatMap((one) => one.dependencies)])],
  };
}
