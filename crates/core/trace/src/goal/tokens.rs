//! The words of a text.

use super::{At, GoalError};

/// A word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Token<'a> {
    /// A letter and what follows of letters, digits and `_`.
    Word(&'a str),
    Number(u64),
    /// `-1`.
    Any,
    Colon,
    Open,
    Close,
    NewLine,
    End,
}

impl Token<'_> {
    /// How it is told in errors.
    pub(super) fn show(self) -> String {
        match self {
            // A word may be as long as the text.
            Self::Word(word) => format!("`{}`", word.chars().take(30).collect::<String>()),
            Self::Number(number) => format!("`{number}`"),
            Self::Any => "`-1`".to_owned(),
            Self::Colon => "`:`".to_owned(),
            Self::Open => "`{`".to_owned(),
            Self::Close => "`}`".to_owned(),
            Self::NewLine => "the end of the line".to_owned(),
            Self::End => "the end of the text".to_owned(),
        }
    }
}

/// Takes words from a text; keeps the next one.
pub(super) struct Tokens<'a> {
    rest: &'a str,
    line: usize,
    column: usize,
    next: Token<'a>,
    at: At,
}

impl<'a> Tokens<'a> {
    pub(super) fn new(text: &'a str) -> Result<Self, GoalError> {
        let mut tokens = Self {
            rest: text,
            line: 1,
            column: 1,
            next: Token::End,
            at: At { line: 1, column: 1 },
        };
        tokens.advance()?;
        Ok(tokens)
    }

    /// The next word.
    pub(super) const fn peek(&self) -> Token<'a> {
        self.next
    }

    /// Where it stands.
    pub(super) const fn at(&self) -> At {
        self.at
    }

    /// Takes the next word.
    pub(super) fn take(&mut self) -> Result<Token<'a>, GoalError> {
        let token = self.next;
        self.advance()?;
        Ok(token)
    }

    /// The next word, which must be `expected`.
    pub(super) fn expect(&mut self, expected: Token<'_>) -> Result<(), GoalError> {
        if self.next != expected {
            return Err(self.unexpected(&expected.show()));
        }
        self.advance()
    }

    /// A number.
    pub(super) fn number(&mut self, what: &str) -> Result<u64, GoalError> {
        match self.next {
            Token::Number(number) => {
                self.advance()?;
                Ok(number)
            }
            _ => Err(self.unexpected(what)),
        }
    }

    #[cold]
    pub(super) fn unexpected(&self, expected: &str) -> GoalError {
        let found = self.next.show();
        self.at
            .error(format!("{found}, where {expected} is expected"))
    }

    fn here(&self) -> At {
        At {
            line: self.line,
            column: self.column,
        }
    }

    /// Leaves the first `bytes` bytes behind.
    fn skip(&mut self, bytes: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(bytes);
        for char in taken.chars() {
            if char == '\n' {
                (self.line, self.column) = (self.line + 1, 1);
            } else {
                self.column += 1;
            }
        }
        self.rest = rest;
        taken
    }

    fn skip_blank(&mut self) -> Result<(), GoalError> {
        loop {
            if self.rest.starts_with("//") {
                self.skip(self.rest.find('\n').unwrap_or(self.rest.len()));
            } else if self.rest.starts_with("/*") {
                let at = self.here();
                let Some(length) = self.rest.find("*/") else {
                    return Err(at.error("the comment does not end: `*/` is missing"));
                };
                self.skip(length + 2);
            } else if self.rest.starts_with([' ', '\t', '\r']) {
                self.skip(1);
            } else {
                return Ok(());
            }
        }
    }

    fn advance(&mut self) -> Result<(), GoalError> {
        self.skip_blank()?;
        self.at = self.here();
        let Some(first) = self.rest.chars().next() else {
            self.next = Token::End;
            return Ok(());
        };
        self.next = match first {
            '\n' => self.symbol(Token::NewLine),
            ':' => self.symbol(Token::Colon),
            '{' => self.symbol(Token::Open),
            '}' => self.symbol(Token::Close),
            '-' if self.rest.starts_with("-1") => {
                self.skip(2);
                Token::Any
            }
            '0'..='9' => {
                let digits = self.skip(self.span(|char| char.is_ascii_digit()));
                let number = digits.parse();
                Token::Number(number.map_err(|_| self.at.error("more than 64 bits hold"))?)
            }
            'a'..='z' | 'A'..='Z' => {
                let length = self.span(|char| char.is_ascii_alphanumeric() || char == '_');
                Token::Word(self.skip(length))
            }
            other => {
                let problem = format!("`{}` has no meaning here", other.escape_debug());
                return Err(self.at.error(problem));
            }
        };
        Ok(())
    }

    fn symbol(&mut self, token: Token<'a>) -> Token<'a> {
        self.skip(1);
        token
    }

    /// How many bytes at the start are of a kind.
    fn span(&self, of_kind: impl Fn(char) -> bool) -> usize {
        let end = self.rest.find(|char| !of_kind(char));
        end.unwrap_or(self.rest.len())
    }
}
