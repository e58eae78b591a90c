from gibbsian.answers.about import answers_about as answers_about
from gibbsian.answers.base import Answers as Answers
from gibbsian.answers.decisions import bayes_decision as bayes_decision
from gibbsian.answers.modes import Modes as Modes
from gibbsian.answers.queries import Divergence as Divergence
from gibbsian.answers.query_text import Query as Query
