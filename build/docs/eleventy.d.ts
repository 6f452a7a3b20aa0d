// What is used here of Eleventy, which has no types of its own.
declare module '@11ty/eleventy' {
  interface Config {
    setTemplateFormats(formats: string[]): void;
    setUseGitIgnore(isUsed: boolean): void;
    setLayoutsDirectory(directory: string): void;
    setLiquidOptions(options: object): void;
    // The library is given as it is: markdown-it for `md`.
    amendLibrary<L>(name: string, change: (library: L) => void): void;
    addPreprocessor<D>(name: string, formats: string, change: (data: D, content: string) => string): void;
    addTransform(name: string, change: (content: string) => string): void;
    addGlobalData(name: string, data: unknown): void;
  }

  export class Eleventy {
    constructor(
      input: string,
      output: string | undefined,
      options: { quietMode: boolean; configPath: string; config(config: Config): void },
    );
    toJSON(): Promise<{ inputPath: string; rawInput: string; content: string }[]>;
  }
}
