// Messages that these pages show after an action was changed.

export const ACTIONS_NOTICES: readonly string[] = [
  'made',
  'saved',
  'secretSaved',
  'deployed',
  'rolledBack',
].map((name) => `console.actions.said.${name}`);
