// What these pages say of what was done.

export const ACTIONS_SAID: readonly string[] = ['made', 'saved', 'secretSaved', 'deployed', 'rolledBack'].map(
  (name) => `console.actions.said.${name}`,
);
